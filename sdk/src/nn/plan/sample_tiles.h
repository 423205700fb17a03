#pragma once

// Finds operations that follow one another and compute each sample on its own. A plan runs such a group on a few
// samples at a time, so that what one operation writes is still in the cache when the next one reads it. What only the
// group needs takes memory for these few samples alone. No bit depends on it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "nn/graph/graph.h"

namespace holdfast {

inline constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

// Operations [first, end), views included.
struct SampleGroup {
  std::size_t first = 0;
  std::size_t end = 0;
  std::int64_t tile = 1;  // samples at a time; fewer than there are
};

struct SampleTiles {
  std::vector<SampleGroup> groups;    // in order
  std::vector<std::size_t> group_of;  // by operation; kNoGroup: none
  // By array: only operations of one group need it, and it has memory for a tile. A view has the value of its memory.
  std::vector<bool> is_local;

  // The first and the last operation of the group of an operation; itself without a group.
  std::size_t first_of(std::size_t operation) const;
  std::size_t last_of(std::size_t operation) const;
};

// Groups whose arrays take more than a few times `cache_bytes`, in tiles that take about as much. 0: none.
SampleTiles find_sample_tiles(const Graph& graph, std::int64_t samples, std::size_t cache_bytes);

}  // namespace holdfast
