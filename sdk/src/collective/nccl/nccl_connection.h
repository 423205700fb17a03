#pragma once

// One NCCL communicator: that of the ranks of one generation, over the stream of this rank's device. Every call ends by
// its deadline, and at once when the generation is ended, whatever NCCL does:
//
//   connecting -> ready <-> queueing, waiting -> aborted
//        \___________________\__________________^      NCCL did not let go in time: given up, the process must be
//                                                      replaced (NcclLibrary::was_given_up())
//
// That a peer is gone is known by the control communicator alone. NCCL's own error state tells of errors of this rank,
// and of broken sockets; of a peer of this host that died it tells nothing. Its errors are therefore followed by a look
// at the control communicator, which says a moment later whether they mean more than that.
//
// Communicators end by ncclCommAbort alone, healthy ones too: it needs no peer. ncclCommDestroy waits for peers, and
// hung in survivors of a failure. All operations of a rank end before its peers can abort: whoever uses a connection
// has a barrier behind each operation.
//
// For one thread. An Error that is thrown here makes the replica exit, so that it is replaced; GenerationEnded lets it
// go on.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collective/communicator.h"
#include "collective/nccl/collective_stream.h"
#include "collective/nccl/nccl_library.h"

namespace holdfast {

struct NcclBounds {
  // Called before an abort that follows a failure.
  std::function<void()> leaving = [] {};
  // When an abort must have returned, and the stream be empty. Counts from the moment when the work that training had
  // queued before the collectives is computed: the stream waits for it, and nobody can cancel it.
  std::chrono::milliseconds abort = std::chrono::seconds(10);
  // When that work must be computed.
  std::chrono::milliseconds training = std::chrono::minutes(1);
  // Until the watchdog has ended a generation in which NCCL noticed a failure first.
  std::chrono::milliseconds verdict = std::chrono::seconds(5);
};

class NcclConnection {
 public:
  // With all ranks of `control`, which must outlive the connection. `kept` is what must not be
  // freed while the device may still use it. Throws GenerationEnded, or Error.
  NcclConnection(std::shared_ptr<NcclLibrary> library, std::shared_ptr<CollectiveStream> stream, Communicator& control,
                 std::shared_ptr<void> kept, const NcclBounds& bounds, Deadline deadline);
  // Within the bounds for training and for aborts.
  ~NcclConnection();

  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  // Queues the calls that `calls` makes of the functions below, as one group. `what` is for errors: "broadcast of ...".
  void queue(const std::string& what, const std::function<void()>& calls, Deadline deadline);
  void send(const float* from, std::size_t floats, int peer);
  void receive(float* to, std::size_t floats, int peer);
  // Rank r's floats come to to + r * floats; `from` may be its own place there.
  void all_gather(const float* from, float* to, std::size_t floats);
  void all_reduce(const float* from, float* to, std::size_t floats);
  void broadcast(float* array, std::size_t floats, int root);

  // Until all that is queued is done.
  void wait(const std::string& what, Deadline deadline);

 private:
  void connect(Deadline deadline);
  void check(nccl::Result result, const char* call);
  // Until NCCL has taken over what it was asked for.
  void settle(const std::string& what, Deadline deadline);
  void poll(const std::string& what, Deadline deadline, const std::function<bool()>& is_done);

  [[noreturn]] void fail(nccl::Result result, const std::string& what, Deadline deadline);
  [[noreturn]] void fail_deadline(const std::string& what);
  [[noreturn]] void end_generation(const std::string& what);
  void require_aborted(const std::string& why);
  bool is_verdict_passed(Deadline deadline) const;

  struct AbortProgress;
  bool abort() noexcept;
  void give_up(bool is_stuck);
  std::shared_ptr<AbortProgress> begin_abort();
  bool has_training_ended_in_time();
  bool is_stream_empty_by(Deadline deadline);
  bool has_passed_mark();
  std::string who() const;

  const std::shared_ptr<NcclLibrary> library_;
  const std::shared_ptr<CollectiveStream> stream_;
  Communicator& control_;
  const std::shared_ptr<void> kept_;
  const NcclBounds bounds_;

  nccl::Comm* comm_ = nullptr;  // null before it connects, and when it has ended
  bool is_connected_ = false;
  bool is_settled_ = false;                           // NCCL has taken over all that it was asked for
  nccl::Result failed_call_ = nccl::Result::success;  // of the group that is being queued
  std::string failed_call_name_;
  bool is_training_late_ = false;  // when the connection was aborted
};

}  // namespace holdfast
