#pragma once

// An implementation of emulation/grid.h whose blocks and threads the thread sanitizer sees as concurrent. Each block is
// a thread of the host with its own shared memory, and each thread of a block is a fiber of the sanitizer. They run one
// at a time, but a switch between them does not order memory for the sanitizer. Only the kernel's own operations do: a
// barrier, an atomic operation after a fence, the end of the grid. A shuffle does not order memory.
//
// The sanitizer can follow 255 concurrent threads, and may miss races between more. So races between blocks are best
// looked for with one thread for each block. It does not see stores that lanes of a warp see in another order, nor
// stores that arrive late.

namespace holdfast::emulation {

enum class Granularity {
  threads,  // all threads may race with each other
  blocks    // a block counts as one thread, so that larger grids are possible
};

struct RaceSettings {
  Granularity granularity = Granularity::threads;
  // If false, these do not order memory until some races were reported. This shows that races are seen.
  bool are_barriers_ordered = true;
  bool are_fences_ordered = true;
};

// Sets how grids run from now on.
RaceSettings& race_settings();

// How many races the sanitizer has reported since the process began.
int reported_races();

}  // namespace holdfast::emulation
