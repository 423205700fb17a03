#pragma once

// Does what touches the run directory on a thread of its own, one task after another. A shared folder may not answer
// for minutes, and the head of a run over several hosts must send beats meanwhile (hosts/beats.h).
//
//   FolderThread thread;
//   thread.add([file, text] { file->append(text); }, text.size());
//   thread.wait(Deadline::after(std::chrono::seconds(5)));
//
// Nobody can end a system call that hangs. So a task may outlive this object, and owns all that it uses.

#include <cstddef>
#include <functional>
#include <memory>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {

// For one thread.
class FolderThread {
 public:
  using Task = std::function<void()>;

  // Throws Error when the system refuses the thread.
  FolderThread();
  // Does not wait. Tasks that have not begun are dropped.
  ~FolderThread();
  FolderThread(const FolderThread&) = delete;
  FolderThread& operator=(const FolderThread&) = delete;

  // Does not wait. The task throws nothing. There is no limit to what may wait: the caller looks at bytes().
  void add(Task task, std::size_t bytes);
  // What all tasks that are not done keep in memory.
  std::size_t bytes() const;
  // Blocks until all tasks are done, or until the deadline. Returns whether they are.
  bool wait(Deadline deadline);

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::recovery
