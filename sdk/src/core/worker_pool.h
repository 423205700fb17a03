#pragma once

// A fixed number of threads that work through numbered tasks. The thread that calls run() is one of them.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast {

class WorkerPool {
 public:
  // Starts `workers` - 1 threads; the caller of run() is worker 0. Throws Error if a thread cannot be started.
  explicit WorkerPool(int workers);
  ~WorkerPool();

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls task(worker, index) once for each index in [0, count). Tasks start in the order of their indices, and each
  // worker runs one at a time. Returns when all are done. After an exception no further task starts. When the running
  // tasks have ended, the exception of the lowest index is rethrown: which one that is does not depend on the threads.
  void run(int count, const std::function<void(int worker, int index)>& task);

 private:
  void end_all();
  void serve(int worker);
  void work(int worker, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_done_;
  const std::function<void(int, int)>* task_ = nullptr;  // guarded by mutex_, like all members down to failed_index_
  int next_index_ = 0;
  int count_ = 0;
  int running_ = 0;
  bool is_stopping_ = false;
  std::exception_ptr failure_;
  int failed_index_ = 0;

  std::vector<std::thread> threads_;
};

}  // namespace holdfast
