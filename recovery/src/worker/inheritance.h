#pragma once

// What the watchdog gives to a process that it starts: open descriptors, whose numbers are in an environment variable.

#include <array>
#include <optional>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

using Inheritance = std::array<int, 4>;  // descriptors: channel, life page, lock, and the fence or -1

// Those of this process, which were taken before main() began; empty in a process that no watchdog started. Any thread.
const std::optional<Inheritance>& inheritance();

// Owns a descriptor of them. Throws Error{invalid_argument} if it is not open.
FileDescriptor adopt(int descriptor);

}  // namespace holdfast::recovery
