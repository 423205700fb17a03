#pragma once

// Saves what an unfinished run leaves in the memory of its watchdog, as a savepoint. For watchdogs of SDK programs; the
// watchdog may be another program, such as `holdfast run`.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace holdfast {

// Writes `image`, the state after `step` updates that a replica copied to its watchdog's memory, into the run
// directory. Returns the path of the savepoint, or nothing where the directory has a savepoint of that step or of a
// later one. For the owner of the run directory, once all replicas are gone.
//
// Throws Error{invalid_file} for bytes that no replica of the SDK wrote, and what writing a savepoint throws.
std::optional<std::string> save_from_memory(const std::string& run_directory, std::int64_t step,
                                            std::span<const std::byte> image);

}  // namespace holdfast
