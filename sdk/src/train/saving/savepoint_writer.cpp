// Two savepoints may be under way: one that is being written and one that waits. Each holds a copy of the state, so a
// third would cost the memory of another copy. A failure is kept until the training thread asks for it, because only
// training can decide whether it matters. docs/decisions/savepoints-in-training.md

#include "train/saving/savepoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

// Well below the default limits after which the watchdog takes a silent process for hung.
constexpr auto kSignOfLifePeriod = std::chrono::seconds(1);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

SavepointEvent event_of(SavepointEvent::Kind kind, const std::string& path, std::int64_t step) {
  SavepointEvent event;
  event.kind = kind;
  event.path = path;
  event.step = step;
  return event;
}

// The failure crosses threads as a pointer, so its sentence is read from it here.
std::string what_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an object was thrown that is not a std::exception";
  }
}

}  // namespace

SavepointWriter::SavepointWriter(FileSystem& files, Tell tell, std::shared_ptr<SavingWatch> watch)
    : files_(files), tell_(std::move(tell)), watch_(std::move(watch)), compressions_(files), thread_([this] {
        serve();
      }) {}

// What waits in the queue is skipped: the caller has flushed, or does not want it any more.
SavepointWriter::~SavepointWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const Work& work : requests_) {
    SavepointEvent event = event_of(SavepointEvent::Kind::skipped, work.request.path, work.request.step);
    event.why = "training ended before its write began";
    tell(std::move(event));
  }
}

// An earlier failure is thrown before the copy, which takes time and memory.
bool SavepointWriter::submit(Request request, Deadline deadline, const StillWaiting& still_waiting) {
  std::unique_lock lock(mutex_);
  if (!has_place()) {
    if (request.options.when_storage_is_slow == WhenStorageIsSlow::skip) {
      SavepointEvent event = skipped(request);
      lock.unlock();
      tell(std::move(event));
      return false;
    }
    wait_for_place(lock, request, deadline, still_waiting);
  }
  rethrow_failure();
  lock.unlock();
  // Only this thread submits, so the slot stays free. Taken earlier, this would be a third copy of the state in memory.
  Snapshot snapshot = request.take_snapshot();
  lock.lock();
  requests_.push_back({std::move(request), std::move(snapshot)});
  changed_.notify_all();
  return true;
}

// The event is made under the lock, which guards the names in it, and told without it.
SavepointEvent SavepointWriter::skipped(const Request& request) const {
  SavepointEvent event = event_of(SavepointEvent::Kind::skipped, request.path, request.step);
  event.why =
      fmt::format("two savepoints are being written already, {} and {}: the storage is slower than savepoints are due",
                  requests_.front().request.path, requests_.back().request.path);
  return event;
}

// The event is told in either case, so that the journal shows a slow storage before the error ends training.
void SavepointWriter::wait_for_place(std::unique_lock<std::mutex>& lock, const Request& request, Deadline deadline,
                                     const StillWaiting& still_waiting) {
  const Clock::time_point begin = Clock::now();
  const bool is_over = wait(lock, deadline, still_waiting, [&] { return has_place(); });
  SavepointEvent event = event_of(SavepointEvent::Kind::waited, request.path, request.step);
  event.seconds = seconds_since(begin);
  if (!is_over) {
    event.kind = SavepointEvent::Kind::failed;
    event.why = fmt::format("savepoint {} waited in vain for {} to be written: the storage is too slow or stuck",
                            request.path, requests_.front().request.path);
  }
  lock.unlock();
  tell(event);
  lock.lock();
  if (!is_over) throw Error(ErrorCode::deadline_exceeded, event.why);
}

void SavepointWriter::flush(Deadline deadline, const StillWaiting& still_waiting) {
  std::unique_lock lock(mutex_);
  const bool is_done = wait(lock, deadline, still_waiting, [&] { return failure_ || requests_.empty(); });
  rethrow_failure();
  if (!is_done) {
    throw Error(ErrorCode::deadline_exceeded,
                fmt::format("savepoint {} was not written in time: the storage is too slow or stuck",
                            requests_.front().request.path));
  }
}

// The waiter is woken by each savepoint that ends, and once a second to show that it lives.
bool SavepointWriter::wait(std::unique_lock<std::mutex>& lock, Deadline deadline, const StillWaiting& still_waiting,
                           const std::function<bool()>& is_over) {
  while (!is_over()) {
    if (deadline.has_passed()) return false;
    if (still_waiting) {
      lock.unlock();
      still_waiting();
      lock.lock();
    }
    changed_.wait_until(lock, std::min(deadline.moment(), Clock::now() + kSignOfLifePeriod), is_over);
  }
  return true;
}

void SavepointWriter::check() {
  const std::lock_guard lock(mutex_);
  rethrow_failure();
}

void SavepointWriter::rethrow_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

// One savepoint after the other: two at once would make both late.
void SavepointWriter::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_stopping_ || !requests_.empty(); });
    if (is_stopping_) return;
    // The front stays in the queue while it is written, so that it counts as under way.
    const Work& work = requests_.front();  // a deque's push_back leaves references alone
    lock.unlock();
    std::exception_ptr failure = arrive(work);
    if (!failure) failure = save(work);
    // Before the lock: what was shown is over, and the wait for the lock is not a part of it.
    if (watch_) watch_->leave();
    lock.lock();
    // The first failure is the cause; those after it mostly follow from it.
    if (failure && !failure_) failure_ = failure;
    requests_.pop_front();
    changed_.notify_all();
  }
}

// A state that does not arrive is a failure of the device, which training must learn of.
std::exception_ptr SavepointWriter::arrive(const Work& work) noexcept {
  try {
    if (!work.snapshot.arrive) return nullptr;
    show({.what = fmt::format("the copy of the state of step {} to the host", work.request.step),
          .bytes = size_bytes(work.snapshot)});
    work.snapshot.arrive();
    return nullptr;
  } catch (...) {
    tell_failure(work, std::current_exception());
    return std::current_exception();
  }
}

// The file is durable before the callback is told, which may delete older savepoints.
std::exception_ptr SavepointWriter::save(const Work& work) noexcept {
  try {
    write(work);
    show({.what = fmt::format("the work that follows once {} is durable", work.request.path), .is_callback = true});
    if (work.request.options.when_durable) work.request.options.when_durable();
    return nullptr;
  } catch (...) {
    tell_failure(work, std::current_exception());
    return work.request.when_failed ? nullptr : std::current_exception();
  }
}

void SavepointWriter::tell_failure(const Work& work, const std::exception_ptr& failure) {
  SavepointEvent event = event_of(SavepointEvent::Kind::failed, work.request.path, work.request.step);
  event.why = what_of(failure);
  tell(event);
  if (work.request.when_failed) work.request.when_failed(event.why);
}

void SavepointWriter::show(BackgroundWork work) const {
  if (watch_) watch_->enter(std::move(work));
}

void SavepointWriter::write(const Work& work) {
  const std::string& path = work.request.path;
  show({.what = fmt::format("the writing of {}", path)});
  const SavepointCompression compression = compression_of(work);
  // One event for all: each of its kinds adds to what the one before had.
  SavepointEvent event = event_of(SavepointEvent::Kind::started, path, work.request.step);
  tell(event);
  const Clock::time_point begin = Clock::now();
  event.kind = SavepointEvent::Kind::progress;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    event.done_bytes = done;
    event.total_bytes = total;
    tell(event);
  };
  event.digest = write_savepoint(files_, path, work.snapshot,
                                 {.compression = compression,
                                  .zstd_level = work.request.options.zstd_level,
                                  .threads = work.request.options.threads,
                                  .progress = progress});
  // write_savepoint() returns after the folder is synced.
  event.kind = SavepointEvent::Kind::durable;
  event.seconds = seconds_since(begin);
  // Asked of the file, since compression decides how long it is.
  event.file_bytes = files_.open_for_reading(path)->size_bytes();
  event.ratio = static_cast<double>(event.total_bytes) / static_cast<double>(event.file_bytes);
  tell(event);
}

SavepointCompression SavepointWriter::compression_of(const Work& work) {
  const SaveOptions& options = work.request.options;
  // Measured here, on the writer's thread: training must not wait for it.
  if (options.compression != SavepointCompression::automatic) return options.compression;
  return compressions_.choose(parent_folder(work.request.path), work.snapshot, options.threads,
                              [&](const std::string& record, const CompressionChoices::Choice& choice) {
                                SavepointEvent event =
                                    event_of(SavepointEvent::Kind::compression_chosen, record, work.request.step);
                                event.why = fmt::format("{}: {}", to_string(choice.compression), choice.why);
                                tell(std::move(event));
                              });
}

void SavepointWriter::tell(SavepointEvent event) {
  if (tell_) tell_(event);
  const std::lock_guard lock(events_mutex_);
  // A savepoint of gigabytes has thousands of progress events, and nobody collects them meanwhile.
  const bool replaces = event.kind == SavepointEvent::Kind::progress && !events_.empty() &&
                        events_.back().kind == event.kind && events_.back().path == event.path;
  if (replaces) events_.pop_back();
  events_.push_back(std::move(event));
}

std::vector<SavepointEvent> SavepointWriter::take_events() {
  const std::lock_guard lock(events_mutex_);
  return std::exchange(events_, {});
}

}  // namespace holdfast
