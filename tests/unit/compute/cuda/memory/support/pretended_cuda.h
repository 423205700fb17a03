#pragma once

// A CUDA runtime with a pretended device in host memory, for code that allocates, copies, waits and captures graphs.
// Queued work happens only when a later event of its stream is polled, so code that reads too early reads old values.
// One engine copies to the device and one to the host, each in the order in which copies were queued. If the stream of
// a copy does not run, the copies of all other streams wait. Any thread.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace holdfast::pretended_cuda {

struct Device {
  std::size_t total_bytes = std::size_t{1} << 30;
  std::size_t used_bytes = 0;
  bool hangs = false;                   // events after queued work are never reached
  bool only_first_stream_runs = false;  // events of the other streams are not reached meanwhile
  cudaError_t failure = cudaSuccess;    // the result of each wait and of all later calls
  bool refuses_to_register = false;     // registering host memory fails
  int direct_copies = 0;                // copies to or from registered host memory
  int staged_copies = 0;                // copies to or from memory of cudaHostAlloc(), by the copy engines
  int small_copies = 0;                 // copies to such memory by a kernel
  int inner_copies = 0;                 // copies within the device
  bool refuses_to_capture = false;
  int launched_graphs = 0;
  int looks_in_vain = 0;             // polls of events that were not reached
  bool moved_awaited_event = false;  // an event was recorded again while a thread waited for it
  bool freed_too_early = false;      // memory was freed while work was queued
  bool would_wait_for_ever = false;  // a call that frees memory would wait for a stream that does not run
};

// There is one device in the process.
Device& device();
// Changes the device while other threads use it.
int looks_in_vain();
// Resets the device and drops queued work.
void reset();

// A member for fixtures whose other members use the device.
struct FreshDevice {
  FreshDevice() { reset(); }
};

}  // namespace holdfast::pretended_cuda
