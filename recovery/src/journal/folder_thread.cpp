// Waiting for a task that hangs would hang as well. So the thread is detached, and shares all that it uses with its
// owner. docs/decisions/journal.md

#include "journal/folder_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "holdfast/base/threads.h"

namespace holdfast::recovery {

struct FolderThread::Shared {
  struct Waiting {
    Task task;
    std::size_t bytes = 0;
  };

  std::mutex mutex;
  std::condition_variable has_changed;
  // Guarded by mutex.
  std::deque<Waiting> waiting;  // the first is being done
  std::size_t bytes = 0;        // of all of them
  bool is_left = false;

  void do_all() {
    leave_signals_to_others();  // to the thread of the watchdog
    std::unique_lock guard(mutex);
    for (;;) {
      has_changed.wait(guard, [this] { return is_left || !waiting.empty(); });
      if (is_left) return;
      const Task task = std::move(waiting.front().task);
      // The task may hang. With the lock held, add() and the destructor would hang with it.
      guard.unlock();
      task();
      guard.lock();
      if (is_left) return;
      // Only now: wait() counts on the task being done when the list is empty.
      bytes -= waiting.front().bytes;
      waiting.pop_front();
      has_changed.notify_all();
    }
  }
};

FolderThread::FolderThread() : shared_(std::make_shared<Shared>()) {
  start_thread("the thread that writes into the run directory", [shared = shared_] { shared->do_all(); }).detach();
}

// Does not join, since a task may never end. The thread goes when its task does, and with it what both share.
FolderThread::~FolderThread() {
  const std::scoped_lock guard(shared_->mutex);
  shared_->is_left = true;
  shared_->has_changed.notify_all();
}

void FolderThread::add(Task task, std::size_t bytes) {
  const std::scoped_lock guard(shared_->mutex);
  shared_->waiting.push_back({.task = std::move(task), .bytes = bytes});
  shared_->bytes += bytes;
  shared_->has_changed.notify_all();
}

std::size_t FolderThread::bytes() const {
  const std::scoped_lock guard(shared_->mutex);
  return shared_->bytes;
}

bool FolderThread::wait(Deadline deadline) {
  std::unique_lock guard(shared_->mutex);
  return shared_->has_changed.wait_until(guard, deadline.moment(), [this] { return shared_->waiting.empty(); });
}

}  // namespace holdfast::recovery
