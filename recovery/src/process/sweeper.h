#pragma once

// Ends the processes that replicas have started and left: when a replica ends, when the run ends, and when the
// watchdog is killed. The sweeper is a process of its own, forked before anything else of the run exists. It holds
// the run directory's lock until nothing is left. For the thread that runs the io_context.

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

  // `lock` is a descriptor that the sweeping process keeps open. `when_lost` is called when that process has died.
  // From then on sweeps end at once, without having ended anything. Throws Error.
  Sweeper(boost::asio::io_context& io, int lock, std::function<void()> when_lost);
  // Ends all that the run's replicas have started. Blocks for up to kLongestSweep.
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // For the environment of a member's process.
  std::string variable_of(int member) const { return marks_.variable_of(member); }

  // Kills the processes with the member's mark until none is left, however long that takes. Does not block.
  void end(int member, WhenGone when_gone);
  // Waits until no process with the mark is left. A later end() of the same member replaces it. Does not block.
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
