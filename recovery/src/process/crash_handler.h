#pragma once

// Records where a process was, in a crash page, when it dies of SIGSEGV, SIGBUS, SIGFPE or SIGABRT. The signal ends it
// all the same, with the status and the core dump that it would have had.
//
// A signal that the program handles or ignores is left alone; in builds with a sanitizer all are. A stack overflow is
// recorded on the thread that makes the object; on another thread the process dies without a record.

#include "process/crash_page.h"

namespace holdfast::recovery {

class CrashHandler {
 public:
  // Only one at a time works in a process; a further one does nothing. The page must outlive it.
  explicit CrashHandler(CrashPage& page);
  ~CrashHandler();
  CrashHandler(const CrashHandler&) = delete;
  CrashHandler& operator=(const CrashHandler&) = delete;

 private:
  bool is_installed_ = false;
};

}  // namespace holdfast::recovery
