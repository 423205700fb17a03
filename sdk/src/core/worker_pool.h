#pragma once

// A fixed number of threads, the caller's own among them, that work through numbered tasks.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast {

class WorkerPool {
 public:
  // `workers` threads work at once, the caller of run() being number 0. Throws Error where they cannot be started.
  explicit WorkerPool(int workers);
  ~WorkerPool();

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls task(worker, index) once for each index in [0, count), indices in order of start; each worker number is used
  // by one call at a time. Returns when all are done. The first exception is rethrown, and tasks not begun by then are
  // left out.
  void run(int count, const std::function<void(int worker, int index)>& task);

 private:
  void end_all();
  void serve(int worker);
  void work(int worker, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_done_;
  const std::function<void(int, int)>* task_ = nullptr;  // guarded by mutex_, like all below
  int next_index_ = 0;
  int count_ = 0;
  int running_ = 0;
  bool is_stopping_ = false;
  std::exception_ptr failure_;

  std::vector<std::thread> threads_;
};

}  // namespace holdfast
