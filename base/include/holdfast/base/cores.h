#pragma once

// How many cores there are for this process.
//
//   const int threads = std::min(core_count(), pieces);

namespace holdfast {

// The number of cores that the calling thread may run on, at least 1: a container or a scheduler may give a process
// fewer than the machine has. Any thread.
int core_count();

}  // namespace holdfast
