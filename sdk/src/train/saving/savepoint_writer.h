#pragma once

// The thread that writes savepoints while training goes on, and what it tells of them.

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
    std::function<Snapshot()> take_snapshot;  // called by submit(), only once there is a place for it
    SaveOptions options{};
    // Called on the writer's thread instead of what a failed write does otherwise: it is rethrown to nobody. A state
    // that does not arrive is no failure of the write, and rethrown all the same.
    std::function<void(const std::string& why)> when_failed{};
  };
  // Called on whichever thread it happens.
  using Tell = std::function<void(const SavepointEvent&)>;
  // Called again and again while a function below blocks: a sign of life for whoever watches.
  using StillWaiting = std::function<void()>;

  // `watch` learns what the writer is doing.
  explicit SavepointWriter(FileSystem& files, Tell tell = {}, std::shared_ptr<SavingWatch> watch = {});
  // Ends after the write that is under way; what waits behind it is skipped.
  ~SavepointWriter();

  // While two are under way: blocks, by the deadline, or returns false without having made anything, as the request
  // says. Rethrows the failure of an earlier write.
  bool submit(Request request, Deadline deadline, const StillWaiting& still_waiting = {});
  // Blocks until all that was submitted is durable, by the deadline. Rethrows the failure of a write.
  void flush(Deadline deadline, const StillWaiting& still_waiting = {});
  // Rethrows the failure of a write.
  void check();

  // What has happened since the last call, in order, with the newest progress alone.
  std::vector<SavepointEvent> take_events();

 private:
  struct Work {
    Request request;
    Snapshot snapshot;
  };

  // With mutex_ held.
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
