#pragma once

// What the tests make the helper try once it is locked in.

#include <string_view>

namespace holdfast::hdf5_reader {

// Locks this process in and does one thing that must end it: what reader_process_test.cpp names, such as "open",
// "socket" or "cpu"; or "memory", which must fail; or "compute", which must work. Returns the exit code: 1 for what was
// not stopped, 42 for memory that was refused, 0 for work that was done, 3 when it could not lock itself in.
int attempt(std::string_view action);

}  // namespace holdfast::hdf5_reader
