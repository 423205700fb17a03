#pragma once

// Which samples the present thread computes, for modules that draw by sample.

#include <cstdint>

namespace holdfast::torch {

struct ShardPosition {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_sample = 0;
  std::int64_t samples = 0;
  std::uint64_t masks = 0;  // drawn so far in this shard
};

// The position that a ShardScope gave this thread; null outside of one.
ShardPosition* shard_position();

class ShardScope {
 public:
  explicit ShardScope(const ShardPosition& position);
  ~ShardScope();
  ShardScope(const ShardScope&) = delete;
  ShardScope& operator=(const ShardScope&) = delete;

 private:
  ShardPosition position_;
};

}  // namespace holdfast::torch
