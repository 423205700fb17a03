#pragma once

// A CUDA runtime that pretends a device in host memory, for code that allocates, copies, waits and captures graphs.
// What is queued in a stream happens when an event behind it is looked at, no earlier: who reads too soon reads what
// was there before. One engine copies to the device and one to the host, each in the order in which it was asked:
// behind a copy of a stream that stands, those of all others wait. Any thread.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace holdfast::pretended_cuda {

struct Device {
  std::size_t total_bytes = std::size_t{1} << 30;
  std::size_t used_bytes = 0;
  bool hangs = false;                   // events behind queued work are never reached
  bool only_first_stream_runs = false;  // the others' events are not reached meanwhile
  cudaError_t failure = cudaSuccess;    // of what is waited for, and of all that follows
  bool refuses_to_register = false;     // host memory
  int direct_copies = 0;                // to or from registered host memory
  int staged_copies = 0;                // to or from memory of cudaHostAlloc(), by the copy engines
  int small_copies = 0;                 // to there by a kernel
  int inner_copies = 0;                 // from device memory to device memory
  bool refuses_to_capture = false;
  int launched_graphs = 0;
  int looks_in_vain = 0;             // at events that were not reached before
  bool moved_awaited_event = false;  // one that was looked at in vain was recorded again: a waiter would wait for more
  bool freed_too_early = false;      // memory while work was queued
  bool would_wait_for_ever = false;  // what gives memory back, for a stream that stands
};

// The only one.
Device& device();
// While other threads use it.
int looks_in_vain();
// As it was at first; what is queued is forgotten.
void reset();

// For fixtures whose members use the device.
struct FreshDevice {
  FreshDevice() { reset(); }
};

}  // namespace holdfast::pretended_cuda
