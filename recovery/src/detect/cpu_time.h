#pragma once

// Tells a process that computes from one that sleeps.

#include <chrono>

namespace holdfast::recovery {

// The time that all threads of the process ran so far, plus the time that its living threads were ready to run while
// others had the processors. It stands still for a process that sleeps or is stopped. It advances with the clock for
// one that computes, however busy the machine is. NCCL's threads are left out: they spin while they wait, even when the
// device hangs. They are known by their names.
//
// The time may decrease when threads end, and by a few milliseconds when a thread of NCCL ran between two ticks of the
// scheduler. Returns zero for a process that is gone. A process that has exited must not be reaped yet, since its
// number may be reused. Takes a few system calls for each thread, so it is for suspects only.
std::chrono::nanoseconds cpu_demand(int pid);

}  // namespace holdfast::recovery
