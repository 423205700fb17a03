#pragma once

// Runs over several hosts, with real agents and processes. Where the hosts are, and so how a program is started there
// and what takes a whole host away, is the part of derived fixtures.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "free_port.h"
#include "resilience/digits_run.h"
#include "support/comes_true.h"
#include "support/program.h"

namespace holdfast {

class HostsRun : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  // `head` is the address of host 0.
  explicit HostsRun(std::string head, int hosts = 2) : number_of_hosts_(hosts), head_(std::move(head)) {
    std::ofstream(folder_ / "secret") << std::string(64, '5');
    std::filesystem::permissions(folder_ / "secret", std::filesystem::perms::owner_read);
  }

  // What it takes to understand a failed test.
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& [host, program] : hosts_) program->signal(SIGTERM);
    while (!hosts_.empty()) end_of(hosts_.begin()->first);
    for (const auto& [host, result] : ended_) {
      ADD_FAILURE() << "host " << host << " ended with " << result.exit_code << " and wrote:\n" << result.output;
    }
    const std::string journal = folder_ / "run/journal.jsonl";
    if (std::filesystem::exists(journal)) ADD_FAILURE() << "the journal:\n" << read_file(journal);
  }

  // `holdfast run` on a host, with variables of the environment.
  std::unique_ptr<RunningProgram> start(int host, const std::vector<std::string>& options = {},
                                        const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> all = options;
    if (std::find(all.begin(), all.end(), "--head-timeout") == all.end()) {
      all.insert(all.end(), {"--head-timeout", "1"});
    }
    return start_command(host, {"run"}, all, variables);
  }

  // `holdfast doctor --hosts` on a host.
  std::unique_ptr<RunningProgram> start_doctor(int host, const std::vector<std::string>& options = {}) const {
    return start_command(host, {"doctor", "--hosts"}, options, {});
  }

  std::unique_ptr<RunningProgram> start_command(int host, const std::vector<std::string>& command,
                                                const std::vector<std::string>& options,
                                                const std::vector<std::string>& variables) const {
    std::vector<std::string> all = variables;
    all.push_back(built_program("holdfast"));
    all.insert(all.end(), command.begin(), command.end());
    if (number_of_hosts_ > 1) {
      all.insert(all.end(), {"--nnodes", std::to_string(number_of_hosts_), "--node-rank", std::to_string(host),
                             "--head", head_ + ":" + std::to_string(port_), "--secret", secret_});
    }
    all.insert(all.end(), {"--run-dir", run_directory(host)});
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", built_program("digits")});
    const std::vector<std::string> digits = digits_arguments({.options = digits_}, folder_);
    all.insert(all.end(), digits.begin(), digits.end());
    return start_program(host, "/usr/bin/env", all);
  }

  virtual std::string run_directory(int) const { return folder_ / "run"; }

  virtual std::unique_ptr<RunningProgram> start_program(int host, const std::string& path,
                                                        const std::vector<std::string>& arguments) const = 0;

  void start_all(const std::vector<std::string>& options = {"--replicas", "1"},
                 const std::vector<std::string>& variables = {}) {
    for (int host = 0; host < number_of_hosts_; ++host) hosts_[host] = start(host, options, variables);
  }

  // Waits for the end of what runs on a host.
  ProgramResult end_of(int host) {
    ended_[host] = hosts_.at(host)->wait();
    hosts_.erase(host);
    return ended_[host];
  }

  // Kills all of a host.
  void kill_host(int host) {
    kill_processes(host);
    EXPECT_EQ(end_of(host).exit_code, 128 + SIGKILL);
  }

  virtual void kill_processes(int host) = 0;

  void expect_finished(int host) {
    const ProgramResult result = end_of(host);
    EXPECT_EQ(result.exit_code, 0) << "host " << host << ":\n" << result.output;
  }

  void expect_the_bits_of_one_host() const { EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest()); }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    if (!std::filesystem::exists(folder_ / "run/journal.jsonl")) return found;
    for (const Json& line : journal_of(folder_)) {
      if (line.at("event") == name) found.push_back(line);
    }
    return found;
  }

  // The numbers of members of all generations, oldest first.
  std::vector<std::size_t> generations() const {
    std::vector<std::size_t> sizes;
    if (!std::filesystem::exists(folder_ / "run/journal.jsonl")) return sizes;
    for (const Json& line : journal_of(folder_)) {
      for (const Json& action : line.value("actions", Json::array())) {
        if (action.at("action") == "open_generation") sizes.push_back(action.at("members").size());
      }
    }
    return sizes;
  }

  // What `holdfast SUBCOMMAND... RUN MORE...` writes.
  std::string command(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    arguments.push_back(folder_ / "run");
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(built_program("holdfast"), arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output;
  }

  // Variables with which a library of this build comes before all others of a program.
  static std::vector<std::string> preloading(const std::string& library) {
    const char* const before = std::getenv("ASAN_OPTIONS");
    const std::string asan = before == nullptr ? "" : std::string(before) + ":";
    return {"LD_PRELOAD=" + built_program(library), "ASAN_OPTIONS=" + asan + "verify_asan_link_order=0"};
  }

  // Whether a test that cannot run here fails instead of being skipped.
  static bool are_hosts_required() {
    const char* const required = std::getenv("HOLDFAST_REQUIRE_HOSTS");
    return required != nullptr && std::string(required) == "1";
  }

  // A fault leaves a mark when it strikes.
  void wait_for_fault() const {
    ASSERT_TRUE(comes_true([this] { return std::filesystem::exists(folder_ / "run/faults"); }));
  }

  // Waits until all members of a run of two replicas are at this step. The one that is not held there may still be
  // about to apply the last update.
  void wait_until_both_are_at(int step) const {
    ASSERT_TRUE(comes_true([this, step] {
      const Json members = Json::parse(command({"status", "--json"})).at("members");
      return members.size() == 2 &&
             std::ranges::all_of(members, [step](const Json& member) { return member.at("step") == step; });
    }));
  }

  const TemporaryFolder folder_;
  int number_of_hosts_;
  const std::string head_;
  const int port_ = resilience::free_port();
  std::string secret_ = folder_ / "secret";
  std::map<std::string, std::string> digits_{};  // options of the program
  std::map<int, std::unique_ptr<RunningProgram>> hosts_;
  std::map<int, ProgramResult> ended_;
};

}  // namespace holdfast
