#pragma once

// The thread that writes savepoints while training goes on, and the events that it reports.
// docs/decisions/savepoints-in-training.md

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/train/savepoint.h"
#include "train/saving/compression_choices.h"
#include "train/saving/saving_watch.h"
#include "train/state/snapshot.h"

namespace holdfast {

// submit(), flush() and check() are for one thread, the training thread.
class SavepointWriter {
 public:
  struct Request {
    std::string path;
    std::int64_t step = 0;
    std::function<Snapshot()> take_snapshot;  // called by submit(), once there is room for it
    SaveOptions options{};
    // If set, called on the writer's thread when the write fails, and the failure is not rethrown. It is also called if
    // the state does not arrive from its device. That is not a failure of the write, so it is rethrown all the same.
    std::function<void(const std::string& why)> when_failed{};
  };
  // Called on the thread on which the event happens.
  using Tell = std::function<void(const SavepointEvent&)>;
  // Called every second while a function below blocks, as a sign of life for the watchdog.
  using StillWaiting = std::function<void()>;

  // `watch`, if not empty, shows what the writer is doing.
  explicit SavepointWriter(FileSystem& files, Tell tell = {}, std::shared_ptr<SavingWatch> watch = {});
  // Waits for the write that is under way. Savepoints that wait in the queue are skipped.
  ~SavepointWriter();

  // Takes a snapshot and queues it. While two savepoints are under way, it blocks, or returns false without a snapshot,
  // as the request says. Throws Error{deadline_exceeded} after the deadline. Rethrows the failure of an earlier write.
  bool submit(Request request, Deadline deadline, const StillWaiting& still_waiting = {});
  // Blocks until all that was submitted is durable. Throws Error{deadline_exceeded} after the deadline. Rethrows the
  // failure of a write.
  void flush(Deadline deadline, const StillWaiting& still_waiting = {});
  // Rethrows the failure of a write, if one has failed.
  void check();

  // The events since the last call, in order. Only the newest of consecutive progress events of a savepoint is kept.
  std::vector<SavepointEvent> take_events();

 private:
  struct Work {
    Request request;
    Snapshot snapshot;
  };

  // These are called with mutex_ held.
  bool has_place() const { return failure_ || requests_.size() < kUnderWay; }
  SavepointEvent skipped(const Request& request) const;
  void wait_for_place(std::unique_lock<std::mutex>& lock, const Request& request, Deadline deadline,
                      const StillWaiting& still_waiting);
  bool wait(std::unique_lock<std::mutex>& lock, Deadline deadline, const StillWaiting& still_waiting,
            const std::function<bool()>& is_over);
  void rethrow_failure();

  // Writer's thread.
  void serve();
  std::exception_ptr arrive(const Work& work) noexcept;
  std::exception_ptr save(const Work& work) noexcept;
  void tell_failure(const Work& work, const std::exception_ptr& failure);
  void write(const Work& work);
  void show(BackgroundWork work) const;
  SavepointCompression compression_of(const Work& work);
  // Any thread, without mutex_.
  void tell(SavepointEvent event);

  static constexpr std::size_t kUnderWay = 2;

  FileSystem& files_;
  const Tell tell_;
  const std::shared_ptr<SavingWatch> watch_;  // may be empty
  CompressionChoices compressions_;           // writer's thread only

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> requests_;   // guarded by mutex_; the front one is being written
  bool is_stopping_ = false;    // guarded by mutex_
  std::exception_ptr failure_;  // guarded by mutex_

  std::mutex events_mutex_;
  std::vector<SavepointEvent> events_;  // guarded by events_mutex_

  std::thread thread_;
};

}  // namespace holdfast
