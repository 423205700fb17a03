#pragma once

// Threads and processes that the system has no room for, with a sentence that says what could not be made and which
// limits hold here. The standard library's says "Resource temporarily unavailable" and nothing else.

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
