#pragma once

// The elements of a chunked dataset, chunk by chunk and decoded by us.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filters.h"
#include "hdf5/hdf5_session.h"

namespace holdfast::hdf5_reader {

// How a dataset is stored; checked before it is used.
struct ChunkedStorage {
  std::vector<std::uint64_t> shape;        // at least one axis
  std::vector<std::uint64_t> chunk_shape;  // no axis 0
  std::size_t element_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  std::vector<FilterStep> filters;
  std::vector<std::byte> fill_value;  // of one element
  std::uint64_t stored_bytes = 0;
};

// Reads rows [first_row, first_row + rows) of axis 0 as they are stored (no byte is swapped) into `out`, where
// first_row is the first of a chunk. What no chunk holds is the fill value. Returns how many chunks the file has there.
// `label` names the dataset in errors.
std::uint64_t read_chunk_rows(hid_t dataset, const ChunkedStorage& storage, std::uint64_t first_row, std::uint64_t rows,
                              const format::Checker& check, const std::string& label, std::span<std::byte> out);

}  // namespace holdfast::hdf5_reader
