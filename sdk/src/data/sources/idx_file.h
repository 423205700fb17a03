#pragma once

// The content of an IDX file: two zero bytes, the element type and the number of axes; the extents as
// u32, big-endian; then the elements, outermost axis first.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/shape.h"

namespace holdfast {

// A whole file in memory.
struct IdxFile {
  Shape shape;
  std::vector<std::uint8_t> elements;  // shape.element_count() of them
};

// The most bytes of elements that a file may have.
struct IdxLimit {
  std::int64_t bytes;
  const char* option;  // that sets it, for messages: "IdxOptions::max_bytes"
};

// Reads and checks a file. Throws as described in holdfast/data/idx.h.
IdxFile read_idx_file(const std::string& path, const IdxLimit& limit);

}  // namespace holdfast
