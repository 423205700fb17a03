#pragma once

// Starts threads, and makes the error for a thread or process that the system refuses to start. The
// standard library says only "Resource temporarily unavailable". The sentence here also says what
// could not be started and which limits hold for this process.
//
//   std::jthread writer = start_thread<std::jthread>("the thread that writes savepoints", [&] { write(); });

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {

// Returns Error{input_output}: "cannot start WHAT: Resource temporarily unavailable; ...". For EAGAIN
// it names the limits of processes and memory; for other errno values it is system_error().
Error start_error(int error_number, const std::string& what);

// Starts function() in a new thread. `Thread` is std::thread or std::jthread. `what` names the thread
// in the error: "the thread that writes savepoints". Throws start_error() when the system refuses.
template <class Thread = std::thread, class Function>
Thread start_thread(const std::string& what, Function&& function) {
  try {
    return Thread(std::forward<Function>(function));
  } catch (const std::system_error& failure) {
    throw start_error(failure.code().value(), what);
  }
}

// From here on the calling thread takes no signal that is sent to the process: those belong to the threads that handle
// them. Signals that say that the thread itself has failed still reach their handlers: SIGSEGV, SIGBUS, SIGFPE, SIGILL,
// SIGTRAP, SIGSYS and SIGABRT. Threads that it starts inherit that.
void leave_signals_to_others();

}  // namespace holdfast
