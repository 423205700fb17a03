#pragma once

// Tells a process that computes from one that sleeps.

#include <chrono>

namespace holdfast::recovery {

// The time that all threads of the process ran so far, and the time that its living threads were ready to run while
// others had the processors. It stands still for a process that sleeps or is stopped, and goes on with the clock for
// one that computes, however crowded the machine. Threads with NCCL's names are left out: they spin while they wait,
// even when the device hangs. The time may fall when threads end, and by a few milliseconds when a thread of NCCL's ran
// between two ticks of the scheduler. Zero for a process that is gone; one that has exited must not have been reaped,
// or its number may be another's.
//
// Takes a few system calls for each thread: for suspects only.
std::chrono::nanoseconds cpu_demand(int pid);

}  // namespace holdfast::recovery
