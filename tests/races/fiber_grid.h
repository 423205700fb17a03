#pragma once

// emulation/grid.h for the thread sanitizer, which sees the blocks and threads of this grid as concurrent. Each block
// is a thread of the host with shared memory of its own, and each thread of a block is a fiber of the sanitizer. In
// fact they take turns, one at a time, but a turn does not order memory for the sanitizer. Only a kernel's own means
// do: a barrier, an atomic operation after a fence, the end of the grid. A shuffle does not order memory.
//
// The sanitizer has room for 255 concurrent threads, and may miss races where there are more. So races between blocks
// are seen best where each block is one thread. Not seen: what lanes of a warp may see of each other's stores beyond
// that order, and stores that take long to arrive.

namespace holdfast::emulation {

enum class Granularity {
  threads,  // each of them may race with each
  blocks    // the threads of a block are one, so that larger grids have room
};

struct RaceSettings {
  Granularity granularity = Granularity::threads;
  // To prove that races are seen: where false, these do not order memory until some races were reported.
  bool are_barriers_ordered = true;
  bool are_fences_ordered = true;
};

// The settings of grids that run from here on.
RaceSettings& race_settings();

// How many races the sanitizer has reported since the process began.
int reported_races();

}  // namespace holdfast::emulation
