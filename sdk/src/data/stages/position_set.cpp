// Sorted ranges that neither touch nor overlap. So a set of a billion positions may take a few bytes, equal sets are
// equal lists, and an intersection takes one pass over both.

#include "data/stages/position_set.h"

#include <algorithm>

namespace holdfast {

PositionSet::PositionSet(std::vector<Range> ranges) {
  std::erase_if(ranges, [](const Range& range) { return range.begin >= range.end; });
  std::ranges::sort(ranges, {}, &Range::begin);
  for (const Range& range : ranges) {
    // Ranges that only touch are joined too. Otherwise one set could have several forms.
    if (!ranges_.empty() && range.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      ranges_.push_back(range);
    }
  }
}

std::int64_t PositionSet::count() const {
  std::int64_t count = 0;
  for (const Range& range : ranges_) count += range.end - range.begin;
  return count;
}

PositionSet PositionSet::intersection(const PositionSet& other) const {
  std::vector<Range> common;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    // May be empty or reversed, where the two do not overlap. The constructor drops such ranges.
    common.push_back({std::max(a->begin, b->begin), std::min(a->end, b->end)});
    // The range after the one that ends first may still overlap with the other one.
    if (a->end < b->end) {
      ++a;
    } else {
      ++b;
    }
  }
  return PositionSet(std::move(common));
}

}  // namespace holdfast
