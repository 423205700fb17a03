#pragma once

// Turns the snapshot that an unfinished run leaves in the memory of its watchdog into a savepoint. For programs that
// watch an SDK program from outside, such as `holdfast run`; training code does not need it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace holdfast {

// Writes `image`, which a replica copied into the memory of its watchdog after `step` updates, into the run directory,
// and returns the path of the savepoint. Returns nothing if the run directory already has a savepoint of that step or a
// later one. For the owner of the run directory, once all replicas are gone. Blocks until the savepoint is durable.
//
// Throws Error{invalid_file} for bytes that no replica of the SDK made, and the errors of writing a savepoint.
std::optional<std::string> save_from_memory(const std::string& run_directory, std::int64_t step,
                                            std::span<const std::byte> image);

}  // namespace holdfast
