// NCCL in non-blocking mode: each call returns at once and is polled, so that the deadline and the end of the
// generation are seen in between. No call of NCCL waits on the thread that trains.
//
// An abort should not block, but has hung. So a detached thread makes it. If it does not return in time, or the stream
// does not run empty, what kernels may still use is never freed and the process is replaced.
// See docs/decisions/nccl.md.

#include "collective/nccl/nccl_connection.h"

#include <fmt/format.h>
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "collective/nccl/pause.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using nccl::Result;

bool is_failure(Result result) {
  return result != Result::success && result != Result::in_progress;
}

// Errors that the death of a peer may cause.
bool may_be_a_peer(Result result) {
  return result == Result::remote_error || result == Result::system_error || result == Result::internal_error;
}

// Errors of a setting, which a new process would meet again.
bool is_setting(Result result) {
  return result == Result::invalid_argument || result == Result::invalid_usage;
}

constexpr std::chrono::milliseconds kLookAtAHealthyStream(500);

// A revoke stops what runs but frees nothing, so that no peer loses memory that it still reads. What it does not stop
// in time is left to the abort.
void revoke(NcclLibrary& library, nccl::Comm* comm, const std::function<bool()>& is_late) {
  if (library.comm_revoke(comm, 0) != Result::in_progress) return;
  Result state = Result::in_progress;
  for (Pause pause; state == Result::in_progress && !is_late(); pause()) {
    if (library.comm_get_async_error(comm, &state) != Result::success) return;
  }
}

}  // namespace

// Shared with the thread that calls NCCL, which may outlive every thread that waits for it.
struct NcclConnection::AbortProgress {
  bool is_revoke_late() {
    const std::lock_guard lock(mutex);
    return revoked_by && revoked_by->has_passed();
  }
  void begin_time(std::chrono::milliseconds bound) {
    const std::lock_guard lock(mutex);
    revoked_by = Deadline::after(bound / 2);
  }
  void end(bool is_success) {
    const std::lock_guard lock(mutex);
    is_succeeded = is_success;
    is_over = true;
    changed.notify_all();
  }
  bool succeeds_by(Deadline deadline) {
    std::unique_lock lock(mutex);
    return changed.wait_until(lock, deadline.moment(), [this] { return is_over; }) && is_succeeded;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Deadline> revoked_by{};  // guarded by mutex; empty while training's work still runs
  bool is_over = false;                  // guarded by mutex
  bool is_succeeded = false;             // guarded by mutex
};

NcclConnection::NcclConnection(std::shared_ptr<NcclLibrary> library, std::shared_ptr<CollectiveStream> stream,
                               Communicator& control, std::shared_ptr<void> kept, const NcclBounds& bounds,
                               Deadline deadline)
    : library_(std::move(library)),
      stream_(std::move(stream)),
      control_(control),
      kept_(std::move(kept)),
      bounds_(bounds) {
  if (library_->is_poisoned()) {
    throw Error(ErrorCode::device_failed,
                fmt::format("NCCL {} in this process did not recover from an earlier failure on {}; the "
                            "process must be replaced",
                            library_->version_text(), stream_->device()));
  }
  connect(deadline);
}

NcclConnection::~NcclConnection() {
  abort();
}

void NcclConnection::connect(Deadline deadline) {
  const std::string what = "connecting";
  stream_->make_current();
  // For an id NCCL starts a thread and opens a socket. It keeps both until all ranks have connected, or else until the
  // process ends. So an id is made only when all ranks are here. If a peer is lost after that, the two still leak.
  control_.barrier(deadline);
  nccl::UniqueId id{};
  if (control_.rank() == 0) {
    const Result made = library_->get_unique_id(&id);
    if (is_failure(made)) fail(made, fmt::format("ncclGetUniqueId while {}", what), deadline);
  }
  control_.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0, true, deadline);
  nccl::Config config;
  config.blocking = 0;
  const Result begun = library_->comm_init_rank_config(&comm_, control_.size(), id, control_.rank(), &config);
  if (is_failure(begun)) fail(begun, "ncclCommInitRankConfig", deadline);
  settle(what, deadline);
  is_connected_ = true;
}

std::string NcclConnection::who() const {
  return fmt::format("rank {} of {} on {} (NCCL {})", control_.rank(), control_.size(), stream_->device(),
                     library_->version_text());
}

void NcclConnection::queue(const std::string& what, const std::function<void()>& calls, Deadline deadline) {
  HOLDFAST_ASSERT(comm_ != nullptr);
  is_settled_ = false;
  failed_call_ = Result::success;
  check(library_->group_start(), "ncclGroupStart");
  calls();
  // Also after a call that failed: an open group would swallow everything that follows.
  check(library_->group_end(), "ncclGroupEnd");
  if (is_failure(failed_call_)) fail(failed_call_, fmt::format("{} of the {}", failed_call_name_, what), deadline);
  settle(what, deadline);
}

// The first failure of a group is the cause; later ones follow from it.
void NcclConnection::check(Result result, const char* call) {
  if (!is_failure(result) || is_failure(failed_call_)) return;
  failed_call_ = result;
  failed_call_name_ = call;
}

void NcclConnection::send(const float* from, std::size_t floats, int peer) {
  check(library_->send(from, floats, nccl::DataType::float32, peer, comm_, stream_->handle()), "ncclSend");
}

void NcclConnection::receive(float* to, std::size_t floats, int peer) {
  check(library_->recv(to, floats, nccl::DataType::float32, peer, comm_, stream_->handle()), "ncclRecv");
}

void NcclConnection::all_gather(const float* from, float* to, std::size_t floats) {
  check(library_->all_gather(from, to, floats, nccl::DataType::float32, comm_, stream_->handle()), "ncclAllGather");
}

void NcclConnection::all_reduce(const float* from, float* to, std::size_t floats) {
  check(library_->all_reduce(from, to, floats, nccl::DataType::float32, nccl::Operation::sum, comm_, stream_->handle()),
        "ncclAllReduce");
}

void NcclConnection::broadcast(float* array, std::size_t floats, int root) {
  check(library_->broadcast(array, array, floats, nccl::DataType::float32, root, comm_, stream_->handle()),
        "ncclBroadcast");
}

void NcclConnection::settle(const std::string& what, Deadline deadline) {
  poll(what, deadline, [&] {
    Result state = Result::success;
    const Result asked = library_->comm_get_async_error(comm_, &state);
    if (is_failure(asked)) fail(asked, fmt::format("ncclCommGetAsyncError while {}", what), deadline);
    if (is_failure(state)) fail(state, what, deadline);
    return state == Result::success;
  });
  is_settled_ = true;
}

void NcclConnection::wait(const std::string& what, Deadline deadline) {
  HOLDFAST_ASSERT(comm_ != nullptr);
  stream_->mark();
  poll(what, deadline, [&] {
    Result state = Result::success;
    library_->comm_get_async_error(comm_, &state);
    if (is_failure(state)) fail(state, what, deadline);
    return has_passed_mark();
  });
}

// After an error of the device NCCL can do nothing any more, so its abort is not waited for.
bool NcclConnection::has_passed_mark() {
  try {
    return stream_->has_passed_mark();
  } catch (...) {
    poison(true);
    throw;
  }
}

void NcclConnection::poll(const std::string& what, Deadline deadline, const std::function<bool()>& is_done) {
  for (Pause pause; !is_done(); pause()) {
    if (control_.is_cancelled()) end_generation(what);
    if (deadline.has_passed()) fail_deadline(what);
  }
}

void NcclConnection::fail(Result result, const std::string& what, Deadline deadline) {
  const std::string why = fmt::format("{} failed for {}: {}; set NCCL_DEBUG=WARN to see why", what, who(),
                                      library_->describe(result, comm_));
  // Aborts at once, so that the peers' connections break too, and need not wait for the watchdog.
  require_aborted(why);
  // While NCCL connects, the driver imports memory of peers. That fails with a CUDA error if a peer has died.
  const bool may_import = result == Result::unhandled_cuda_error && !is_settled_;
  if ((may_be_a_peer(result) || may_import) && is_verdict_passed(deadline)) {
    throw GenerationEnded(fmt::format("the generation was ended when {}", why));
  }
  throw Error(is_setting(result) && !is_connected_ ? ErrorCode::unavailable : ErrorCode::device_failed, why);
}

bool NcclConnection::is_verdict_passed(Deadline deadline) const {
  const Deadline verdict = Deadline::at(std::min(deadline.moment(), Deadline::after(bounds_.verdict).moment()));
  return is_done_by(verdict, [&] { return control_.is_cancelled(); });
}

void NcclConnection::fail_deadline(const std::string& what) {
  const std::string why = fmt::format(
      "{} reached its deadline while waiting for {}, which every rank had begun; a device or a link between devices "
      "hangs",
      who(), what);
  require_aborted(why);
  throw Error(ErrorCode::deadline_exceeded, why);
}

void NcclConnection::end_generation(const std::string& what) {
  const std::string why = fmt::format("the generation was ended during {} of {}", what, who());
  require_aborted(why);
  throw GenerationEnded(why);
}

void NcclConnection::require_aborted(const std::string& why) {
  bounds_.leaving();
  if (abort()) return;
  const auto within = [](std::chrono::milliseconds bound) { return fmt::format(" within {} ms", bound.count()); };
  std::string how = fmt::format("aborting NCCL did not end{}", within(bounds_.abort));
  if (is_training_late_) {
    how = fmt::format("the work that training had queued before did not end{}", within(bounds_.training));
  }
  if (!library_->survives_abort())
    how = "this version of NCCL cannot connect twice in one process; use 2.28.9 or newer";
  throw Error(ErrorCode::device_failed, fmt::format("{}; {}, so this process must be replaced", why, how));
}

bool NcclConnection::abort() noexcept {
  if (comm_ == nullptr) return true;
  bool is_aborted = false;
  bool is_stuck = true;
  try {
    if (library_->survives_abort()) {
      // Aborts at once, so that the peers' connections break. NCCL's kernels end only after the work of training that
      // the stream waits for, which may be a step of any length. The bound for an abort counts from then.
      const std::shared_ptr<AbortProgress> progress = begin_abort();
      is_training_late_ =
          !is_done_by(Deadline::after(bounds_.training), [&] { return stream_->has_training_passed(); });
      progress->begin_time(bounds_.abort);
      const Deadline deadline = Deadline::after(bounds_.abort);
      is_aborted = !is_training_late_ && progress->succeeds_by(deadline) && is_stream_empty_by(deadline);
    } else {
      // This version must not be aborted. A connection whose stream runs empty is left as it is: this process does not
      // connect again, but may go on alone.
      is_stuck = !is_stream_empty_by(Deadline::after(std::min(bounds_.abort, kLookAtAHealthyStream)));
    }
  } catch (...) {
    // The device is lost, and its memory is freed with the process.
  }
  comm_ = nullptr;
  if (!is_aborted) poison(is_stuck);
  return is_aborted;
}

// Freeing memory or the stream would wait for kernels that may never end. So NCCL's library keeps both.
void NcclConnection::poison(bool is_stuck) {
  comm_ = nullptr;
  if (is_stuck) stream_->mark_device_lost();
  using Kept = std::pair<std::shared_ptr<void>, std::shared_ptr<CollectiveStream>>;
  library_->poison(std::make_shared<Kept>(kept_, stream_));
}

// In a detached thread, since the abort may never return.
std::shared_ptr<NcclConnection::AbortProgress> NcclConnection::begin_abort() {
  auto progress = std::make_shared<AbortProgress>();
  // After a call that NCCL has not yet accepted, a revoke leaves a job that is freed to the abort (nccl#2251).
  const bool can_revoke = is_connected_ && is_settled_ && library_->comm_revoke != nullptr;
  std::thread([library = library_, stream = stream_, comm = comm_, can_revoke, progress] {
    bool is_succeeded = false;
    try {
      stream->make_current();
      if (can_revoke) revoke(*library, comm, [&] { return progress->is_revoke_late(); });
      is_succeeded = !is_failure(library->comm_abort(comm));
    } catch (...) {
      // The device is lost.
    }
    progress->end(is_succeeded);
  }).detach();
  return progress;
}

// An abort that returned may have left a kernel running.
bool NcclConnection::is_stream_empty_by(Deadline deadline) {
  stream_->mark();
  return is_done_by(deadline, [&] { return stream_->has_passed_mark(); });
}

}  // namespace holdfast
