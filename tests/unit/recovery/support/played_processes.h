#pragma once

// Processes of a host that tests play, and what starts them: what they say and do comes from the test, and what is done
// to them is written down.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "process/replica_process.h"

namespace holdfast::recovery {

struct Played {
  ReplicaStarter::Program program{};
  ReplicaStarter::Handlers handlers{};
  std::vector<nlohmann::json> sent{};
  std::vector<std::size_t> descriptors{};  // of each message
  std::vector<int> signals{};              // that asked it to leave
  int kills = 0;
  bool is_watched_for_death = false;
  bool is_dropped = false;
  std::optional<Error> failure{};  // of sending
  // What it shows.
  Heartbeat heartbeat{};
  std::optional<Crash> crash{};

  // It says something.
  void say(nlohmann::json body) const {
    Message message{.body = std::move(body)};
    handlers.on_message(message);
  }
  void exit(ExitStatus status) const { handlers.on_exit(status); }
};

class PlayedProcess final : public ReplicaProcess {
 public:
  explicit PlayedProcess(Played& played) : played_(played) {}
  ~PlayedProcess() override { played_.is_dropped = true; }

  void watch_for_death() override { played_.is_watched_for_death = true; }
  void send(const Message& message) const override {
    if (played_.failure) throw Error(*played_.failure);
    played_.sent.push_back(message.body);
    played_.descriptors.push_back(message.descriptors.size());
  }
  void ask_to_leave(int signal) override { played_.signals.push_back(signal); }
  void kill() override { ++played_.kills; }
  bool has_joined() const override { return true; }
  int pid() const override { return 1000 + played_.program.member; }
  std::time_t started() const override { return 0; }
  std::int64_t step() const override { return played_.heartbeat.step; }
  JoinState join_state() const override { return JoinState::in_steps; }
  std::uint64_t samples() const override { return 17; }
  Heartbeat heartbeat(int member, std::uint64_t arrivals) const override {
    Heartbeat heartbeat = played_.heartbeat;
    heartbeat.member = member;
    heartbeat.arrivals = arrivals;
    return heartbeat;
  }
  Load load(int member, int shards, int at_once) const override {
    return {.member = member,
            .shards = shards,
            .at_once = at_once,
            .steps = played_.heartbeat.steps,
            .computing = std::chrono::nanoseconds(5),
            .waiting = std::chrono::nanoseconds(6)};
  }
  std::string what_in_background() const override { return "fsync"; }
  bool is_stopped() const override { return true; }
  std::chrono::nanoseconds cpu_demand() const override { return std::chrono::nanoseconds(7); }
  std::optional<Crash> crash() const override { return played_.crash; }

 private:
  Played& played_;
};

class PlayedStarter final : public ReplicaStarter {
 public:
  std::map<int, Played> played;    // by member
  std::optional<Error> failure{};  // of starting

  std::shared_ptr<ReplicaProcess> start(const Program& program, Handlers handlers) override {
    if (failure) throw Error(*failure);
    Played& started = played[program.member];
    started.program = program;
    started.handlers = std::move(handlers);
    return std::make_shared<PlayedProcess>(started);
  }
};

}  // namespace holdfast::recovery
