#pragma once

// What a run leaves in the memory of its watchdog when it ends without having finished, as a savepoint: for watchdogs
// of programs of the SDK, in another program than theirs too (`holdfast run`).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace holdfast {

// Writes `image`, which a replica copied to its watchdog's memory behind `step` updates, into the run directory, and
// returns the savepoint's path; nothing where the run directory has one of that step or a later one. For the owner of
// the run directory, when all replicas are gone.
//
// Throws Error{invalid_file} for bytes that no replica of the SDK made, and as writing a savepoint does.
std::optional<std::string> save_from_memory(const std::string& run_directory, std::int64_t step,
                                            std::span<const std::byte> image);

}  // namespace holdfast
