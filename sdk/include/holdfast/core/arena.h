#pragma once

// Where named f32 arrays lie in one flat block of floats (an arena): parameters, gradients and every optimizer slot of
// a model share one layout, so that an update, a snapshot, a broadcast or a reduction is one pass over memory. Entries
// start at multiples of 64 bytes; the padding between them is always zero.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/core/shape.h"

namespace holdfast {

struct ArenaEntry {
  std::string name;  // unique in its layout, parts separated by '/': "conv2d/kernel"
  Shape shape;
  std::size_t offset = 0;  // of the first element, in floats

  std::size_t element_count() const { return static_cast<std::size_t>(shape.element_count()); }
};

class ArenaLayout {
 public:
  static constexpr std::size_t kAlignmentFloats = 16;

  // Appends an entry and returns its index. Throws Error{invalid_argument} when the name is taken or empty.
  std::size_t add(const std::string& name, const Shape& shape);

  std::span<const ArenaEntry> entries() const { return entries_; }
  // Floats that an arena of this layout takes, padding included; a multiple of kAlignmentFloats.
  std::size_t float_count() const { return float_count_; }
  // Elements of all entries, without padding.
  std::size_t element_count() const;

  // The entry's part of an arena of this layout. Asserts that the arena has float_count() floats.
  std::span<float> view(std::span<float> arena, std::size_t entry) const;
  std::span<const float> view(std::span<const float> arena, std::size_t entry) const;

  // Digest of the entries' elements in order, without padding.
  Digest digest(std::span<const float> arena) const;

 private:
  std::vector<ArenaEntry> entries_;
  std::size_t float_count_ = 0;
};

}  // namespace holdfast
