#include "data/position_set.h"

#include <algorithm>

namespace holdfast {

PositionSet::PositionSet(std::vector<Range> ranges) {
  std::erase_if(ranges, [](const Range& range) { return range.begin >= range.end; });
  std::ranges::sort(ranges, {}, &Range::begin);
  for (const Range& range : ranges) {
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
