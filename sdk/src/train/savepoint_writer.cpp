#include "train/savepoint_writer.h"

#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {

constexpr std::size_t kUnderWay = 2;

SavepointWriter::SavepointWriter(FileSystem& files) : files_(files), thread_([this] { serve(); }) {}

SavepointWriter::~SavepointWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SavepointWriter::submit(Request request, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool has_place =
      changed_.wait_until(lock, deadline.moment(), [&] { return failure_ || requests_.size() < kUnderWay; });
  rethrow_failure();
  if (!has_place) {
    throw Error(ErrorCode::deadline_exceeded, "savepoint " + request.path + " waited in vain for " +
                                                  requests_.front().path +
                                                  " to be written: the storage is too slow or stuck");
  }
  requests_.push_back(std::move(request));
  changed_.notify_all();
}

void SavepointWriter::flush(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool is_done = changed_.wait_until(lock, deadline.moment(), [&] { return failure_ || requests_.empty(); });
  rethrow_failure();
  if (!is_done) {
    throw Error(ErrorCode::deadline_exceeded,
                "savepoint " + requests_.front().path + " was not written in time: the storage is too slow or stuck");
  }
}

void SavepointWriter::rethrow_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void SavepointWriter::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_stopping_ || !requests_.empty(); });
    if (is_stopping_) return;
    const Request& request = requests_.front();  // a deque's push_back leaves references alone
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (request.when_started) request.when_started();
      const Digest digest = write_savepoint(files_, request.path, request.snapshot);
      if (request.when_durable) request.when_durable(digest);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    requests_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace holdfast
