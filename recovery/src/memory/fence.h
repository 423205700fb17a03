#pragma once

// The fence of a host: until when its processes may change anything that others see. It is a word in shared memory. The
// agent moves it on while the head acknowledges its beats (hosts/beats.h), and every process reads it before an update,
// a rename or a deletion. So it also holds where the agent is stopped or suspended and can end nothing.
//
// A run of a single host has no fence. docs/decisions/fences.md

#include <chrono>
#include <cstdint>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// Since the host was started. It goes on while the host is suspended, and clocks of two hosts have nothing in common.
using BootTime = std::chrono::nanoseconds;

// CLOCK_BOOTTIME.
BootTime boot_time_now();

// The agent's end.
class Fence {
 public:
  // It has run out until it is set. Throws Error{out_of_memory or input_output}.
  Fence();

  void set(BootTime until);
  BootTime until() const;
  bool has_run_out() const { return boot_time_now() >= until(); }
  // For a process, which cannot move the fence by it.
  FileDescriptor for_processes() const { return memory_.read_only_descriptor(); }

 private:
  SharedMemory memory_;
};

// The end of a process, which has the fence of its host.
class FenceView {
 public:
  // Throws Error{invalid_argument} for memory that is too small.
  explicit FenceView(FileDescriptor memory);

  // Any thread.
  bool has_run_out() const;

 private:
  SharedMemory memory_;
};

}  // namespace holdfast::recovery
