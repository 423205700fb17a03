#pragma once

// What HDF5's filters did to a chunk, undone. HDF5 1.10 undoes it, too, but believes the result to be as long as it
// should be: shorter ones make it read what lies behind them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foreign_hdf5/foreign_rules.h"

namespace holdfast::hdf5_reader {

struct FilterStep {
  format::Filter filter;
  std::size_t element_bytes = 1;  // of shuffle
};

// `steps` in the order of writing; those whose bit is set in `skipped` were left out for this chunk. At most one of
// them compresses. Replaces `bytes`; false when they do not decode to exactly `chunk_bytes`, checksums included.
[[nodiscard]] bool decode_chunk(std::span<const FilterStep> steps, std::uint32_t skipped, std::size_t chunk_bytes,
                                std::vector<std::byte>& bytes);

}  // namespace holdfast::hdf5_reader
