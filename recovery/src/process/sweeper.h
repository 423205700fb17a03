#pragma once

// Ends what replicas have started and left behind, when a replica ends, when the run does, and when the watchdog is
// killed: a process of its own, forked before anything else of the run exists, which holds the run directory's lock
// until nothing is left. For the thread that runs the io_context.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "process/marked_processes.h"

namespace holdfast::recovery {

class Sweeper {
 public:
  // `ended`: how many processes were killed.
  using WhenGone = std::function<void(int ended)>;

  // `lock` is a descriptor that the process keeps open; `when_lost` is called when that process has died, and sweeps
  // end at once from then on, having ended nothing. Throws Error.
  Sweeper(boost::asio::io_context& io, int lock, std::function<void()> when_lost);
  // Ends all that the run's replicas have started, and waits for that up to kLongestSweep.
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // For the environment of a member's process.
  std::string variable_of(int member) const { return marks_.variable_of(member); }

  // Kills what bears the member's mark until nothing is left that does, as long as that takes.
  void end(int member, WhenGone when_gone);
  // Waits until nothing is left that bears it. A later end() of the same member takes its place.
  void await(int member, WhenGone when_gone);

  int pid() const { return pid_; }

 private:
  void request(int member, bool is_to_be_killed, WhenGone when_gone);
  void wait_for_answers();
  void take_answers();
  void lose();

  const Marks marks_ = Marks::create();
  const std::function<void()> when_lost_;
  int pid_ = -1;
  FileDescriptor process_;
  boost::asio::posix::stream_descriptor socket_;
  bool is_lost_ = false;
  std::map<int, WhenGone> waiting_;  // by member
};

}  // namespace holdfast::recovery
