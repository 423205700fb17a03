#pragma once

// The thread that writes savepoints while training goes on.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "holdfast/base/deadline.h"
#include "train/snapshot.h"

namespace holdfast {

class SavepointWriter {
 public:
  struct Request {
    std::string path;
    Snapshot snapshot;
    std::function<void()> when_started;  // both are called on the writer thread
    std::function<void(const Digest&)> when_durable;
  };

  explicit SavepointWriter(FileSystem& files);
  // Ends after the write that is under way; what waits behind it is dropped.
  ~SavepointWriter();

  // Blocks while two are under way, by the deadline. Rethrows the failure of an earlier write.
  void submit(Request request, Deadline deadline);
  // Blocks until all that was submitted is durable, by the deadline. Rethrows the failure of a write.
  void flush(Deadline deadline);

 private:
  void serve();
  void rethrow_failure();

  FileSystem& files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;  // guarded by mutex_; the front one is being written
  bool is_stopping_ = false;      // guarded by mutex_
  std::exception_ptr failure_;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace holdfast
