#pragma once

// A set of positions in an epoch, as ranges: a whole data set of any size takes one range.

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

  // Takes ranges in any order, which may overlap or be empty.
  explicit PositionSet(std::vector<Range> ranges);
  // 0 up to `size`.
  static PositionSet below(std::int64_t size) { return PositionSet({{0, size}}); }

  // In order, none empty, with a gap between any two.
  std::span<const Range> ranges() const { return ranges_; }
  bool is_empty() const { return ranges_.empty(); }
  std::int64_t count() const;
  PositionSet intersection(const PositionSet& other) const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace holdfast
