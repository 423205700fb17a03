#pragma once

// The links of one rank to the ranks of its lane on the other hosts, and the loop that exchanges frames over all of
// them at once. A call of the communicator is a LaneTask: it says what to send to each host, and where to put what
// comes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/hosts/frame.h"
#include "collective/hosts/frame_stream.h"
#include "collective/hosts/host_layout.h"
#include "collective/hosts/link.h"
#include "holdfast/base/deadline.h"

namespace holdfast {

struct OutgoingFrame {
  Frame frame;
  ConstFrameBody body;
};

class LaneTask {
 public:
  virtual ~LaneTask() = default;

  // The next frame for a host; nothing if there is none yet. Its body must stay as it is until the next call for this
  // host, or the end of the task.
  virtual std::optional<OutgoingFrame> next_for(int host) = 0;
  // Whether next_for() will never return a frame for this host again.
  virtual bool has_sent_all(int host) const = 0;

  // Says where the body of the frame from a host goes; nothing if there is no room yet. Throws FrameError if it is not
  // the one that comes next.
  virtual std::optional<FrameBody> place_for(int host, const Frame& frame) = 0;
  virtual void take(int host, const Frame& frame) = 0;
  virtual bool has_received_all(int host) const = 0;
};

class Lane {
 public:
  // How a rank on a lane is told that the generation has ended.
  struct Cancellation {
    int event = -1;                      // readable then (link_wait.h); -1 if there is none
    std::function<bool()> is_cancelled;  // asked several times in each call
  };

  // The lane of `rank`. `links` has a link to each other host; the entry of its own host is empty. Throws
  // Error{invalid_argument} if a link is missing.
  Lane(const HostLayout& layout, int rank, std::uint64_t generation, std::vector<std::unique_ptr<Link>> links,
       Cancellation cancellation);

  // Exchanges frames until the task is complete with every host. Throws GenerationEnded when the generation was ended
  // or a link ended, Error{deadline_exceeded} with the name of the rank that it waited for, and FrameError. After any
  // of them the lane must not be used any more.
  void run(LaneTask& task, std::uint32_t call, Deadline deadline);

  // Ends all links, on both sides. Any thread.
  void shut_down() noexcept;

 private:
  struct Peer {
    int host;
    FrameStream stream;
  };

  bool exchange(Peer& peer, LaneTask& task);
  bool is_done(const Peer& peer, const LaneTask& task) const;
  void wait(LaneTask& task, Deadline deadline) const;
  void check_cancelled() const;
  std::string name_of(int host) const;
  [[noreturn]] void reach_deadline(LaneTask& task) const;

  const HostLayout layout_;
  const int rank_;
  const int lane_;
  const Cancellation cancellation_;
  std::vector<Peer> peers_;
};

}  // namespace holdfast
