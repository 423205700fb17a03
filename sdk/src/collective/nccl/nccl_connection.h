#pragma once

// The NCCL communicator of one generation, on the collective stream of this rank's device. Every call ends by its
// deadline, and at once when the generation ends, whatever NCCL does:
//
//   connecting -> ready <-> queueing, waiting -> aborted
//        \___________________\__________________^      If the abort does not end in time, this process's NCCL is
//        poisoned,
//                                                      and the process must be replaced (NcclLibrary::is_poisoned()).
//
// Only the control communicator knows whether a peer is gone. NCCL reports errors of this rank and broken sockets, but
// not the death of a peer on the same host. After an error of NCCL the connection therefore waits a moment for the
// control communicator, which says whether the generation has ended.
//
// A connection always ends by ncclCommAbort, which needs no peer. ncclCommDestroy waits for peers, and hung in the
// survivors of a failure. No operation of a rank may still run when a peer aborts, so a caller must have a barrier
// after each operation.
//
// One thread uses it. After an Error the replica exits and is replaced; after GenerationEnded it goes on.
// See docs/decisions/nccl.md.

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
  // How long an abort may take, until it has returned and the stream is empty. Counts from the end of the work that
  // training had queued before: the stream waits for that work, which cannot be cancelled.
  std::chrono::milliseconds abort = std::chrono::seconds(10);
  // How long that work may take.
  std::chrono::milliseconds training = std::chrono::minutes(1);
  // How long to wait for the watchdog to end the generation, after NCCL has noticed a failure first.
  std::chrono::milliseconds verdict = std::chrono::seconds(5);
};

class NcclConnection {
 public:
  // Connects with all ranks of `control`, which must outlive the connection. `kept` owns memory that must not be freed
  // as long as the device may use it. Throws GenerationEnded or Error.
  NcclConnection(std::shared_ptr<NcclLibrary> library, std::shared_ptr<CollectiveStream> stream, Communicator& control,
                 std::shared_ptr<void> kept, const NcclBounds& bounds, Deadline deadline);
  // Aborts. Takes no longer than the bounds for training and for aborts together.
  ~NcclConnection();

  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  // Queues the calls that `calls` makes of the functions below, as one NCCL group. `what` names the operation in
  // errors: "broadcast of ...".
  void queue(const std::string& what, const std::function<void()>& calls, Deadline deadline);
  void send(const float* from, std::size_t floats, int peer);
  void receive(float* to, std::size_t floats, int peer);
  // The floats of rank r go to `to + r * floats`. `from` may be this rank's part of `to`.
  void all_gather(const float* from, float* to, std::size_t floats);
  void all_reduce(const float* from, float* to, std::size_t floats);
  void broadcast(float* array, std::size_t floats, int root);

  // Returns when everything that was queued is done.
  void wait(const std::string& what, Deadline deadline);

 private:
  void connect(Deadline deadline);
  void check(nccl::Result result, const char* call);
  // Returns when NCCL has accepted all calls, which it does in the background.
  void settle(const std::string& what, Deadline deadline);
  void poll(const std::string& what, Deadline deadline, const std::function<bool()>& is_done);

  [[noreturn]] void fail(nccl::Result result, const std::string& what, Deadline deadline);
  [[noreturn]] void fail_deadline(const std::string& what);
  [[noreturn]] void end_generation(const std::string& what);
  void require_aborted(const std::string& why);
  bool is_verdict_passed(Deadline deadline) const;

  struct AbortProgress;
  bool abort() noexcept;
  void poison(bool is_stuck);
  std::shared_ptr<AbortProgress> begin_abort();
  bool is_stream_empty_by(Deadline deadline);
  bool has_passed_mark();
  std::string who() const;

  const std::shared_ptr<NcclLibrary> library_;
  const std::shared_ptr<CollectiveStream> stream_;
  Communicator& control_;
  const std::shared_ptr<void> kept_;
  const NcclBounds bounds_;

  nccl::Comm* comm_ = nullptr;  // null before connecting and after the abort
  bool is_connected_ = false;
  bool is_settled_ = false;                           // NCCL has accepted all calls
  nccl::Result failed_call_ = nccl::Result::success;  // the first failure in the group that is being queued
  std::string failed_call_name_;
  bool is_training_late_ = false;  // training's work did not end within its bound before the abort
};

}  // namespace holdfast
