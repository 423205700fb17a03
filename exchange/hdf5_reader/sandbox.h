#pragma once

// Puts this process into a sandbox. From then on it can compute, allocate, write to one pipe and end, and nothing
// else.

#include <cstdint>

namespace holdfast::hdf5_reader {

struct SandboxLimits {
  std::uint64_t memory_bytes = 0;  // address space
  std::uint64_t cpu_seconds = 0;
  int output = -1;  // the only descriptor that can be written to
};

// True if the list of allowed system calls is known for this processor.
bool is_sandbox_known();

// Cannot be undone. Any other system call kills the process (SIGSYS): opening, connecting, executing, forking,
// mapping executable memory. Open descriptors stay open, but only `output` can be used. Returns false if the kernel
// refuses any part; errno says why. The process must then not parse anything.
bool lock_in(const SandboxLimits& limits);

}  // namespace holdfast::hdf5_reader
