#pragma once

// One incarnation of a replica as the watchdog sees it: its process, channel and life page, as callbacks on the thread
// that runs the io_context. Its end is told when what it had started is gone, too. Dropping it kills the process.

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "channel/channel.h"
#include "decide/stragglers.h"
#include "detect/hang_detector.h"
#include "detect/life_page.h"
#include "process/crash_page.h"
#include "process/process.h"
#include "process/sweeper.h"

namespace holdfast::recovery {

class ReplicaProcess : public std::enable_shared_from_this<ReplicaProcess> {
 public:
  struct Program {
    std::string executable{};
    std::vector<std::string> arguments{};
    int lock = -1;                         // descriptor to inherit
    std::vector<std::string> variables{};  // "NAME=VALUE", beside those that are set here
    int member = 0;
    bool ignores_failing_writes = false;  // see SpawnOptions
  };
  // What the worker sent before its end is always told before the end.
  struct Handlers {
    std::function<void(Message&)> on_message;
    std::function<void(const std::string& what)> on_bad_message;
    std::function<void()> on_death;
    // The last of all.
    std::function<void(ExitStatus)> on_exit;
    // Before that: `ended` processes that it had left were killed; `is_any_left`: some still had not gone when the time
    // for that was over.
    std::function<void(int ended, bool is_any_left)> on_swept;
  };

  // `sweeper` outlives it. Throws Error when the process cannot be started.
  static std::shared_ptr<ReplicaProcess> start(boost::asio::io_context& io, Sweeper& sweeper, const Program& program,
                                               Handlers handlers);

  // Call it once the worker has said that it holds its life page. Where no thread can be started for it, logs a
  // warning: the death is then seen only when the kernel has ended the process.
  void watch_for_death();
  // Does not wait for the worker to read. Throws as Channel::send does.
  void send(const Message& message) const;
  // To it and its group, by which it leaves in its own time, and what it has started in theirs, until it is killed.
  void ask_to_leave(int signal);
  void kill();
  // It has said that it is a worker.
  bool has_joined() const { return has_joined_; }

  int pid() const { return process_.pid(); }
  std::int64_t step() const { return page_.step.load(std::memory_order_relaxed); }
  JoinState join_state() const { return page_.join_state.load(std::memory_order_relaxed); }
  bool is_stopped() const { return process_.is_stopped(); }
  std::chrono::nanoseconds cpu_demand() const { return process_.cpu_demand(); }
  // `arrivals` as in Pulse, since the page does not say it.
  Pulse pulse(int member, std::uint64_t arrivals) const;
  // Of a replica that computes `shards` in a step, `at_once` of them at a time.
  Load load(int member, int shards, int at_once) const;
  std::string what_in_background() const { return page_.what_in_background(); }
  // What it left when it crashed; empty while it has not, and where it had no time for it.
  std::optional<Crash> crash() const { return CrashPage::read(life_, process_.pid()); }
  std::time_t started() const { return started_; }
  std::uint64_t samples() const { return page_.samples.load(std::memory_order_relaxed); }

 private:
  ReplicaProcess(boost::asio::io_context& io, Sweeper& sweeper, int member, Handlers handlers, Channel channel,
                 SharedMemory life, Process process);

  void wait_for_messages();
  void wait_for_exit();
  void receive_all();
  void on_died();
  void on_exit_possible();
  void end_what_it_started();
  void on_swept(int ended, bool is_any_left);

  boost::asio::io_context& io_;
  Sweeper& sweeper_;
  const int member_;
  Handlers handlers_;
  Channel channel_;
  SharedMemory life_;
  LifePage& page_;
  Process process_;
  const std::time_t started_ = std::time(nullptr);
  boost::asio::posix::stream_descriptor channel_events_;
  boost::asio::posix::stream_descriptor exit_events_;
  boost::asio::steady_timer sweep_timer_;
  bool is_asked_to_leave_ = false;
  bool has_joined_ = false;
  bool is_over_ = false;                   // it was told that it has ended
  std::optional<DeathWatch> death_watch_;  // last: its thread uses the page
};

}  // namespace holdfast::recovery
