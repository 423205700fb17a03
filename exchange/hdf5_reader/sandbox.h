#pragma once

// Locks this process in: from then on it computes, allocates, writes to one pipe and ends, and nothing else.

#include <cstdint>

namespace holdfast::hdf5_reader {

struct SandboxLimits {
  std::uint64_t memory_bytes = 0;  // of address space
  std::uint64_t cpu_seconds = 0;
  int output = -1;  // the only descriptor that may be written to
};

// Whether this processor has a list of system calls to allow.
bool is_sandbox_known();

// Irrevocable. Any other system call kills the process (SIGSYS): opening, connecting, executing, forking, mapping
// executable memory. What is open stays open, but cannot be read or written, apart from `output`. False when the kernel
// refuses any part of it; errno says why.
bool lock_in(const SandboxLimits& limits);

}  // namespace holdfast::hdf5_reader
