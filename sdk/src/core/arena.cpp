// One block for all arrays of a kind: optimizers, sums and digests then work in one pass. Each array begins at a cache
// line.

#include "holdfast/core/arena.h"

#include <fmt/format.h>
#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {

static std::size_t round_up(std::size_t floats) {
  return (floats + ArenaLayout::kAlignmentFloats - 1) / ArenaLayout::kAlignmentFloats * ArenaLayout::kAlignmentFloats;
}

std::size_t ArenaLayout::add(const std::string& name, const Shape& shape) {
  const bool is_taken =
      std::any_of(entries_.begin(), entries_.end(), [&](const ArenaEntry& e) { return e.name == name; });
  if (name.empty() || is_taken) {
    throw Error(ErrorCode::invalid_argument, fmt::format("each entry of an arena needs its own name, but \"{}\" is {}",
                                                         name, is_taken ? "taken" : "empty"));
  }
  entries_.push_back({.name = name, .shape = shape, .offset = float_count_});
  // Always a multiple of the alignment, so the next entry begins at one.
  float_count_ = round_up(float_count_ + entries_.back().element_count());
  return entries_.size() - 1;
}

std::size_t ArenaLayout::element_count() const {
  std::size_t count = 0;
  for (const ArenaEntry& entry : entries_) count += entry.element_count();
  return count;
}

std::span<const float> ArenaLayout::view(std::span<const float> arena, std::size_t entry) const {
  HOLDFAST_ASSERT(arena.size() == float_count_ && entry < entries_.size());
  return arena.subspan(entries_[entry].offset, entries_[entry].element_count());
}

std::span<float> ArenaLayout::view(std::span<float> arena, std::size_t entry) const {
  HOLDFAST_ASSERT(arena.size() == float_count_ && entry < entries_.size());
  return arena.subspan(entries_[entry].offset, entries_[entry].element_count());
}

Digest ArenaLayout::digest(std::span<const float> arena) const {
  // Entries only: the padding between them is not part of the state.
  DigestBuilder builder;
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) builder.update(std::as_bytes(view(arena, entry)));
  return builder.finish();
}

}  // namespace holdfast
