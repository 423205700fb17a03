#pragma once

// What a forked process does with the descriptors that it inherited, before it executes another program or instead.
// Allocates nothing and takes no lock. By close_range(2) where the kernel has it (Linux 5.9, and 5.11 for
// close_on_exec_from()), else by the list in /proc, else one number after the other.

#include <span>

namespace holdfast::recovery {

// All from `first` on are closed when this process executes a program.
void close_on_exec_from(int first);

// Closes all from `first` on but those of `kept`, which are sorted.
void close_all_but(int first, std::span<const int> kept);

}  // namespace holdfast::recovery
