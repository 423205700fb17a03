// Runs over hosts with a network of their own, which can be killed whole and cut off without a word. Whatever happens,
// the bits are those of one host. Gates hold ranks at a step until what a test waits for has happened, so nothing
// depends on which of two things is quicker. docs/decisions/lost-hosts.md

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "integration/hosts/hosts_run.h"
#include "support/host_networks.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kMostHosts = 3;

// Where a rank waits until the test lets it go on.
struct Gate {
  int rank = 0;
  int step = 10;
  int generation = 0;
};

class HostsInNamespaces : public HostsRun {
 protected:
  HostsInNamespaces() : HostsRun(HostNetworks::address_of(0), kMostHosts) {}

  void SetUp() override {
    const std::string& why_not = HostNetworks::why_not();
    const char* const required = std::getenv("HOLDFAST_REQUIRE_HOSTS");
    if (!why_not.empty() && required != nullptr && std::string(required) == "1") FAIL() << why_not;
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    networks_.emplace(kMostHosts);
  }

  std::unique_ptr<RunningProgram> start_program(int host, const std::string& path,
                                                const std::vector<std::string>& arguments) const override {
    return networks_->start(host, path, arguments);
  }

  void kill_processes(int host) override { networks_->kill_all(host); }

  // Where a rank of the first generation is.
  int host_of(int rank) const {
    for (const Json& line : journal_of(folder_)) {
      for (const Json& action : line.value("actions", Json::array())) {
        if (action.at("action") == "open_generation") return action.at("hosts").at(static_cast<std::size_t>(rank));
      }
    }
    return -1;
  }

  // Starts all hosts, with gates. A process that waits at one has not hung. For so long an agent without a head waits.
  void start_with(const std::vector<Gate>& gates, const std::string& head_timeout = "300") {
    std::vector<std::string> options = {"--replicas", std::to_string(replicas_), "--hang-after",
                                        "300",        "--head-timeout",          head_timeout};
    for (const Gate& gate : gates) {
      // By itself this does nothing: no beat is due within a millisecond.
      options.insert(
          options.end(),
          {"--inject", "rank=" + std::to_string(gate.rank) + ",step=" + std::to_string(gate.step) +
                           ",generation=" + std::to_string(gate.generation) + ",fault=delay-beats,duration_ms=1"});
    }
    start_all(options, preloading("libheld_faults.so"));
  }

  // The mark of a rank that waits at the gate with this index; empty before that.
  std::string mark_of(int gate) const {
    if (!std::filesystem::exists(folder_ / "run/faults")) return "";
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run/faults")) {
      const std::string name = entry.path().filename();
      if (name.starts_with(std::to_string(gate) + "-") && name.ends_with(".fired")) return entry.path();
    }
    return "";
  }

  void wait_at_gate(int gate) const {
    ASSERT_TRUE(comes_true([this, gate] { return !mark_of(gate).empty(); })) << "no rank came to gate " << gate;
  }

  void open_gate(int gate) const {
    const std::string mark = mark_of(gate);
    ASSERT_FALSE(mark.empty()) << "no rank is at gate " << gate;
    std::ofstream(mark + ".go") << "\n";
  }

  void wait_for(const std::string& event, std::size_t times = 1) const {
    ASSERT_TRUE(comes_true([&] { return events(event).size() >= times; })) << event;
  }

  void expect_all_finished() {
    while (!hosts_.empty()) expect_finished(hosts_.rbegin()->first);
  }

  // A step that was lost would be saved again, by the generation that computes it again.
  void expect_that_no_step_was_lost() const {
    std::vector<std::int64_t> steps;
    for (const Json& saved : events("savepoint")) steps.push_back(saved.at("details").at("step"));
    EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()), steps.end())
        << ::testing::PrintToString(steps);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back(), 27);
    EXPECT_THAT(events("resumed"), IsEmpty());
    EXPECT_EQ(events("fit_finished").size(), 1U);
  }

  // What comes of a program with another secret that says it is host 1.
  ProgramResult with_another_secret(int from) const {
    const std::string secret = folder_ / "other_secret";
    std::ofstream(secret) << std::string(64, '6');
    std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
    return networks_
        ->start(
            from, built_program("holdfast"),
            {"doctor", "--hosts", "--nnodes", "2", "--node-rank", "1", "--head", head_ + ":" + std::to_string(port_),
             "--secret", secret, "--run-dir", folder_ / "other", "--join-timeout", "1", "--", built_program("digits")})
        ->wait();
  }

  std::optional<HostNetworks> networks_;
  int replicas_ = 1;  // of each host
};

// ---- One digest for any number of hosts and replicas

class HostsInNamespacesWith : public HostsInNamespaces, public ::testing::WithParamInterface<std::tuple<int, int>> {};

INSTANTIATE_TEST_SUITE_P(HostsAndReplicas, HostsInNamespacesWith,
                         ::testing::Values(std::tuple(1, 1), std::tuple(1, 2), std::tuple(2, 1), std::tuple(2, 2),
                                           std::tuple(3, 1)),
                         [](const auto& hosts_and_replicas) {
                           return std::to_string(std::get<0>(hosts_and_replicas.param)) + "x" +
                                  std::to_string(std::get<1>(hosts_and_replicas.param));
                         });

TEST_P(HostsInNamespacesWith, TrainToTheSameBits) {
  std::tie(number_of_hosts_, replicas_) = GetParam();

  start_with({});

  expect_all_finished();
  expect_the_bits_of_one_host();
  EXPECT_THAT(generations(), ElementsAre(number_of_hosts_ * replicas_));
}

TEST_F(HostsInNamespaces, OpenNoPortIfThereIsOnlyOne) {
  number_of_hosts_ = 1;
  replicas_ = 2;
  start_with({{.rank = 0}});
  wait_at_gate(0);

  EXPECT_THAT(networks_->sockets(0), IsEmpty());

  open_gate(0);
  expect_all_finished();
  expect_the_bits_of_one_host();
}

// ---- Hosts that are killed, with all that runs on them

TEST_F(HostsInNamespaces, GoOnWithoutOneThatIsKilled) {
  start_with({{.rank = 2}});
  wait_at_gate(0);

  kill_host(host_of(2));

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(3, 2));
  EXPECT_EQ(events("host_lost").size(), 1U);
}

// All have computed ten steps when the head's host is killed, and keep the state in memory alone.
TEST_F(HostsInNamespaces, SaveTheirNewestStepWhenThatOfTheHeadIsKilled) {
  digits_ = {{"--memory-snapshot-every", "1"}, {"--save-every", "0"}};
  start_with({{.rank = 0}, {.rank = 1}, {.rank = 2}}, "1");
  for (int gate = 0; gate < 3; ++gate) wait_at_gate(gate);

  kill_host(0);
  for (int gate = 0; gate < 3; ++gate) open_gate(gate);
  const std::vector<ProgramResult> others = {end_of(1), end_of(2)};
  start_with({});
  expect_all_finished();

  for (const ProgramResult& other : others) {
    EXPECT_EQ(other.exit_code, 75) << other.output;
    EXPECT_THAT(other.output, HasSubstr("savepoint-0000000010"));
  }
  expect_the_bits_of_one_host();
  ASSERT_EQ(events("resumed").size(), 1U);
  EXPECT_EQ(events("resumed")[0].at("details").at("step"), 10);
}

// ---- Hosts that are cut off

TEST_F(HostsInNamespaces, TakeOneBackThatWasCutOff) {
  start_with({{.rank = 0}, {.rank = 0, .step = 12, .generation = 1}});
  wait_at_gate(0);
  const int cut = host_of(2);
  networks_->cut_off(cut);
  wait_for("host_lost");
  EXPECT_THAT(events("host_lost")[0].at("reason").get<std::string>(), HasSubstr("did not answer"));
  open_gate(0);
  wait_at_gate(1);

  networks_->heal(cut);
  wait_for("host_returned");
  open_gate(1);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(3, 2, 3));
}

// The head goes on with its own host. The others cannot know that, and save what they have.
TEST_F(HostsInNamespaces, SaveWhatTheyHaveWhenThatOfTheHeadIsCutOff) {
  digits_ = {{"--memory-snapshot-every", "1"}};
  start_with({{.rank = 0}}, "1");
  wait_at_gate(0);

  networks_->cut_off(0);
  const std::vector<ProgramResult> others = {end_of(1), end_of(2)};
  wait_for("host_lost", 2);
  open_gate(0);
  expect_finished(0);

  for (const ProgramResult& other : others) EXPECT_EQ(other.exit_code, 75) << other.output;
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_EQ(generations().back(), 1U);
}

// ---- Strangers

FileDescriptor connected_to(const std::string& address, int port) {
  FileDescriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &peer.sin_addr), 1);
  EXPECT_EQ(::connect(connection.value(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer), 0)
      << address << ":" << port;
  return connection;
}

// What a stranger can do without the secret, at each port of two hosts that train: to say nothing on hundreds of
// connections, to say what makes no sense, and to come with another secret.
TEST_F(HostsInNamespaces, AreNotDisturbedByStrangers) {
  number_of_hosts_ = 2;
  const int stranger = 2;
  start_with({{.rank = 0}});
  wait_at_gate(0);

  std::vector<FileDescriptor> silent;
  std::size_t ports = 0;
  for (int host = 0; host < number_of_hosts_; ++host) {
    for (const int port : networks_->listening_ports(host)) {
      ++ports;
      networks_->on(stranger, [&] {
        for (int i = 0; i < 200; ++i) silent.push_back(connected_to(HostNetworks::address_of(host), port));
        const FileDescriptor garbage = connected_to(HostNetworks::address_of(host), port);
        const std::string bytes(100'000, '\xa5');
        EXPECT_GT(::send(garbage.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
      });
    }
  }
  const ProgramResult unwelcome = with_another_secret(stranger);
  open_gate(0);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_EQ(unwelcome.exit_code, 1);
  EXPECT_THAT(unwelcome.output, HasSubstr("cannot be reached"));
  EXPECT_GE(ports, 3U) << "the head's, and one for gradients on each host";
  EXPECT_THAT(events("host_lost"), IsEmpty());
  EXPECT_THAT(generations(), ElementsAre(2));
}

}  // namespace
}  // namespace holdfast
