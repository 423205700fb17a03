#pragma once

// Starts threads, and makes the error for a thread or process that the system has no room for. Its sentence says what
// could not be started and which limits hold here. The standard library says only "Resource temporarily unavailable".

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {

// Error{input_output}: "cannot start WHAT: Resource temporarily unavailable; ...".
Error start_error(int error_number, const std::string& what);

// `Thread` is std::thread or std::jthread. `what` it is for: "the thread that writes savepoints".
template <class Thread = std::thread, class Function>
Thread start_thread(const std::string& what, Function&& function) {
  try {
    return Thread(std::forward<Function>(function));
  } catch (const std::system_error& failure) {
    throw start_error(failure.code().value(), what);
  }
}

}  // namespace holdfast
