#pragma once

// Has a process that dies of SIGSEGV, SIGBUS, SIGFPE or SIGABRT leave where it was in a crash page. The signal ends it
// all the same, with the status and the core dump that it would have had.
//
// A signal that the program has a handler for, or ignores, stays as it is; in builds with a sanitizer all do. A stack
// that has overflowed is told of on the thread that makes the object; on another thread the process dies without a
// word.

#include "crash_page.h"

namespace holdfast::recovery {

class CrashHandler {
 public:
  // One at a time in a process; a further one does nothing. The page must outlive it.
  explicit CrashHandler(CrashPage& page);
  ~CrashHandler();
  CrashHandler(const CrashHandler&) = delete;
  CrashHandler& operator=(const CrashHandler&) = delete;

 private:
  bool is_installed_ = false;
};

}  // namespace holdfast::recovery
