#pragma once

// emulation/grid.h for the thread sanitizer: a grid whose blocks and threads it takes for what runs at once. Each block
// is a thread of the host with shared memory of its own, and each thread of a block a fiber of the sanitizer. They take
// turns all the same, one at a time, but a turn orders nothing for the sanitizer: only what a kernel does for it does
// (a barrier, an atomic operation after a fence, the end of the grid). A shuffle orders no memory.
//
// The sanitizer has room for 255 that run at once, and may miss what two of more did to each other: what threads of
// different blocks do is seen best with whole blocks for one. Not seen: what lanes of a warp may see of each other's
// stores beyond that order, and stores that take long to arrive.

namespace holdfast::emulation {

enum class Granularity {
  threads,  // each of them may race with each
  blocks    // the threads of a block are one, so that larger grids have room
};

struct RaceSettings {
  Granularity granularity = Granularity::threads;
  // To prove that something is seen: these order nothing then, until some races were reported.
  bool are_barriers_ordered = true;
  bool are_fences_ordered = true;
};

// Of the grids that are run from here on.
RaceSettings& race_settings();

// By the sanitizer, since the process began.
int reported_races();

}  // namespace holdfast::emulation
