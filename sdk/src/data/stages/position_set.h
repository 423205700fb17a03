#pragma once

// A set of positions in an epoch, stored as ranges: a whole data set of any size takes a single range.

#include <cstdint>
#include <span>
#include <vector>

namespace holdfast {

class PositionSet {
 public:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    friend bool operator==(const Range&, const Range&) = default;
  };

  // The ranges may come in any order, overlap or be empty.
  explicit PositionSet(std::vector<Range> ranges);
  // The positions 0 to `size` - 1.
  static PositionSet below(std::int64_t size) { return PositionSet({{0, size}}); }

  // Sorted and not empty, with a gap between any two.
  std::span<const Range> ranges() const { return ranges_; }
  bool is_empty() const { return ranges_.empty(); }
  // The number of positions.
  std::int64_t count() const;
  // The positions that are in both sets.
  PositionSet intersection(const PositionSet& other) const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace holdfast
