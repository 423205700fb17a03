#pragma once

// The layout of an arena: one flat block of floats that holds many named f32 arrays. The parameters,
// the gradients and each optimizer slot of a model share one layout, so an update, a snapshot, a
// broadcast or a reduction is a single pass over memory. An ArenaLayout only describes; it allocates
// nothing and owns no floats. Entries start at multiples of 64 bytes, and the padding between them is
// always zero.
//
//   ArenaLayout layout;
//   const std::size_t kernel = layout.add("dense/kernel", Shape{784, 10});
//   std::vector<float> arena(layout.float_count());
//   std::span<float> weights = layout.view(arena, kernel);   // 7840 floats within `arena`

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/core/shape.h"

namespace holdfast {

// One named array and its place in the arena.
struct ArenaEntry {
  std::string name;        // unique in its layout, parts separated by '/': "conv2d/kernel"
  Shape shape;             // of the array, which lies row-major
  std::size_t offset = 0;  // of the first element, in floats

  std::size_t element_count() const { return static_cast<std::size_t>(shape.element_count()); }  // in floats
};

// Where each of many named arrays lies in one block of floats.
class ArenaLayout {
 public:
  // Each entry starts at a multiple of so many floats: 64 bytes, a cache line.
  static constexpr std::size_t kAlignmentFloats = 16;

  // Appends an entry and returns its index. Throws Error{invalid_argument} if the name is empty or
  // taken.
  std::size_t add(const std::string& name, const Shape& shape);

  // The arrays in the order of add(). Valid until the next add().
  std::span<const ArenaEntry> entries() const { return entries_; }
  // Floats that an arena of this layout takes, padding included. A multiple of kAlignmentFloats.
  std::size_t float_count() const { return float_count_; }
  // Elements of all entries, without padding.
  std::size_t element_count() const;

  // The floats of one entry within `arena`. Asserts that the arena has float_count() floats.
  std::span<float> view(std::span<float> arena, std::size_t entry) const;
  std::span<const float> view(std::span<const float> arena, std::size_t entry) const;

  // Digest of the elements of all entries in order. Padding does not enter it.
  Digest digest(std::span<const float> arena) const;

 private:
  std::vector<ArenaEntry> entries_;
  std::size_t float_count_ = 0;
};

}  // namespace holdfast
