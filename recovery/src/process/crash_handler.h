#pragma once

// Records the stack of a process in a crash page when it dies of SIGSEGV, SIGBUS, SIGFPE or SIGABRT. The signal still
// ends the process, with the same status and core dump.
//
// Signals that the program handles or ignores are left alone. So are all signals in builds with a sanitizer. A stack
// overflow is recorded on the thread that makes the object. On another thread the process dies without a record.

#include "process/crash_page.h"

namespace holdfast::recovery {

class CrashHandler {
 public:
  // One handler at a time works in a process; another one does nothing. The page must outlive it.
  explicit CrashHandler(CrashPage& page);
  ~CrashHandler();
  CrashHandler(const CrashHandler&) = delete;
  CrashHandler& operator=(const CrashHandler&) = delete;

 private:
  bool is_installed_ = false;
};

}  // namespace holdfast::recovery
