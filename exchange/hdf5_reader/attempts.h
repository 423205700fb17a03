#pragma once

// Actions that the tests make the helper try inside its sandbox.

#include <string_view>

namespace holdfast::hdf5_reader {

// Enters the sandbox and performs one action. Most actions must end the process: reader_process_test.cpp lists them
// ("open", "socket", "cpu"). "memory" must fail and "compute" must work. Returns the exit code: 0 for work that was
// done, 1 for an action that was not stopped, 3 when the sandbox could not be entered, 42 for memory that was
// refused.
int attempt(std::string_view action);

}  // namespace holdfast::hdf5_reader
