#pragma once

// Undoes what HDF5's filters did to a chunk. HDF5 1.10 can do that, too, but it trusts the length of the result: it
// reads past the end of one that is too short.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foreign_hdf5/foreign_rules.h"

namespace holdfast::hdf5_reader {

struct FilterStep {
  format::Filter filter;
  std::size_t element_bytes = 1;  // used by shuffle
};

// `steps` are in the order of writing. Those whose bit is set in `skipped` were left out for this chunk. At most one
// of them compresses. Replaces `bytes`. Returns false unless they decode to exactly `chunk_bytes`, checksums
// included.
[[nodiscard]] bool decode_chunk(std::span<const FilterStep> steps, std::uint32_t skipped, std::size_t chunk_bytes,
                                std::vector<std::byte>& bytes);

}  // namespace holdfast::hdf5_reader
