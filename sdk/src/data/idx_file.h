#pragma once

// The bytes of an IDX file. Layout: two zero bytes, element type, number of axes; the extents as u32 big-endian; the
// elements, outermost axis first.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/shape.h"

namespace holdfast {

struct IdxFile {
  Shape shape;
  std::vector<std::uint8_t> elements;  // shape.element_count() of them
};

// Errors as in holdfast/data/idx.h.
IdxFile read_idx_file(const std::string& path);

}  // namespace holdfast
