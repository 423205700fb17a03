#pragma once

// Closes the descriptors that a forked process has inherited. Allocates nothing and takes no lock. Uses
// close_range(2) where the kernel has it (Linux 5.9, and 5.11 for close_on_exec_from()), otherwise the list in /proc,
// otherwise one number after the other.

#include <span>

namespace holdfast::recovery {

// All descriptors from `first` on are closed when this process executes a program.
void close_on_exec_from(int first);

// Closes all descriptors from `first` on except those of `kept`, which is sorted.
void close_all_but(int first, std::span<const int> kept);

}  // namespace holdfast::recovery
