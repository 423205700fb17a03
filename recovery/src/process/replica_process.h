#pragma once

// One incarnation of a replica as the watchdog sees it, and what starts one. The watchdog knows these interfaces alone,
// so that replicas may run on other hosts. local_replicas.h has those of this host, agents/remote_host.h those of
// others.

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel/channel.h"
#include "decide/stragglers.h"
#include "detect/hang_detector.h"
#include "detect/life_page.h"
#include "holdfast/base/error.h"
#include "process/crash_page.h"
#include "process/process.h"

namespace holdfast::recovery {

// For the thread that started it. Dropping it kills the process.
class ReplicaProcess {
 public:
  ReplicaProcess() = default;
  virtual ~ReplicaProcess() = default;
  ReplicaProcess(const ReplicaProcess&) = delete;
  ReplicaProcess& operator=(const ReplicaProcess&) = delete;

  // Call it once the worker has said that it holds its life page. From then on a death is seen before the kernel has
  // ended the process. Where that cannot be watched, logs a warning: the death is seen a little later.
  virtual void watch_for_death() = 0;
  // Does not wait for the worker to read. Throws as Channel::send does.
  virtual void send(const Message& message) const = 0;
  // Sends the signal to the process and its group. They may take their time to leave, until kill() is called.
  virtual void ask_to_leave(int signal) = 0;
  virtual void kill() = 0;
  // Whether it has said that it is a worker.
  virtual bool has_joined() const = 0;

  virtual int pid() const = 0;
  virtual std::time_t started() const = 0;
  // What it has reported of its progress.
  virtual std::int64_t step() const = 0;
  virtual JoinState join_state() const = 0;
  virtual std::uint64_t samples() const = 0;
  // `arrivals` as in Heartbeat, since the process does not report it.
  virtual Heartbeat heartbeat(int member, std::uint64_t arrivals) const = 0;
  // How much a replica does that computes `shards` in a step, `at_once` of them at a time.
  virtual Load load(int member, int shards, int at_once) const = 0;
  virtual std::string what_in_background() const = 0;
  // How the system sees it.
  virtual bool is_stopped() const = 0;
  virtual std::chrono::nanoseconds cpu_demand() const = 0;
  // What it left when it crashed. Empty while it has not crashed, and where it had no time to leave anything.
  virtual std::optional<Crash> crash() const = 0;
};

// Starts the replicas of a run, and ends what they leave. It outlives all that it has started.
class ReplicaStarter {
 public:
  struct Program {
    std::string executable{};
    std::vector<std::string> arguments{};
    std::vector<std::string> variables{};  // "NAME=VALUE", besides those that the starter sets
    int member = 0;
    bool ignores_failing_writes = false;  // see SpawnOptions
    // false: start() does not wait until the program runs. That it cannot comes as on_start_failed.
    bool is_waited_for = true;
  };
  // What a worker sent before its end is always reported before the end.
  struct Handlers {
    std::function<void(Message&)> on_message;
    std::function<void(const std::string& what)> on_bad_message;
    // Something that it asked for failed, and it cannot go on. `is_unrecoverable`: nor could a new process.
    std::function<void(const std::string& what, bool is_unrecoverable)> on_failure{};
    std::function<void()> on_death;
    // The last call of all.
    std::function<void(ExitStatus)> on_exit;
    // Before on_exit: `ended` processes that the replica had left were killed. `is_any_left`: some were still there
    // when the time for that was over.
    std::function<void(int ended, bool is_any_left)> on_swept;
    // Only of a process that start() does not wait for, as all of other hosts: it could not be started. Nothing
    // follows.
    std::function<void(const Error& error)> on_start_failed{};
  };

  virtual ~ReplicaStarter() = default;
  // Throws Error when the process cannot be started.
  virtual std::shared_ptr<ReplicaProcess> start(const Program& program, Handlers handlers) = 0;
};

}  // namespace holdfast::recovery
