// One mutex guards the tasks' state. A thread holds it except while it runs a task or waits for one. Tasks are whole
// shards or pieces of a batch, so nothing is gained by handing them out without a lock. See docs/decisions/loading.md.

#include "core/worker_pool.h"

#include <fmt/format.h>
#include <string>
#include <utility>

#include "holdfast/base/threads.h"

namespace holdfast {

WorkerPool::WorkerPool(int workers) {
  try {
    for (int worker = 1; worker < workers; ++worker) {
      threads_.push_back(
          start_thread(fmt::format("worker thread {} of {}", worker, workers), [this, worker] { serve(worker); }));
    }
  } catch (...) {
    // The destructor does not run now, and destroying a thread that was not joined would end the process.
    end_all();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  end_all();
}

void WorkerPool::end_all() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The task is passed by pointer: it lives until all workers are done with it.
void WorkerPool::run(int count, const std::function<void(int, int)>& task) {
  std::unique_lock lock(mutex_);
  task_ = &task;
  next_index_ = 0;
  count_ = count;
  work_arrived_.notify_all();
  // The calling thread works too, so a pool of one worker needs no other thread.
  work(0, lock);
  work_done_.wait(lock, [&] { return running_ == 0; });
  task_ = nullptr;
  // A thread that wakes late finds no index left, and does not follow the pointer to a task that is
  // gone.
  count_ = 0;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void WorkerPool::serve(int worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_arrived_.wait(lock, [&] { return is_stopping_ || next_index_ < count_; });
    if (is_stopping_) return;
    work(worker, lock);
    // Only the thread in run() waits for this.
    if (running_ == 0) work_done_.notify_one();
  }
}

void WorkerPool::work(int worker, std::unique_lock<std::mutex>& lock) {
  while (next_index_ < count_) {
    // Under the lock, so tasks start in the order of their indices. FirstFailure relies on it.
    const int index = next_index_++;
    ++running_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*task_)(worker, index);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --running_;
    if (failure) {
      if (!failure_ || index < failed_index_) {
        failure_ = failure;
        failed_index_ = index;
      }
      // The tasks that have not begun are left out: their result would be thrown away with the exception.
      next_index_ = count_;
    }
  }
}

}  // namespace holdfast
