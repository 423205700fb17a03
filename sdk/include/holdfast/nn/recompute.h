#pragma once

// Trades time for memory: what a segment of a model computes is not kept for the backward pass, but computed again
// right before it (Chen et al., "Training deep nets with sublinear memory cost", 2016). Only the inputs of the segment
// are kept.
//
//   Value x = input({1024, 768});
//   for (int i = 0; i < 12; ++i) x = recompute([&] { return block(x); });
//   const Value y = recompute(Dense{10})(x);
//
// No bit changes: random draws are the same ones, and moving averages get the statistics of a batch once. A graph and
// its files say which calls belong to which segment.

#include <concepts>
#include <memory>
#include <utility>

#include "holdfast/nn/layer.h"

namespace holdfast {

// As long as it exists, layers and functions that this thread applies belong to one segment that is recomputed. Within
// another one it does nothing: the outer segment has all of them.
class RecomputedSegment {
 public:
  RecomputedSegment();
  ~RecomputedSegment();
  RecomputedSegment(const RecomputedSegment&) = delete;
  RecomputedSegment& operator=(const RecomputedSegment&) = delete;

 private:
  const bool is_outer_;
};

// Calls `describe()`, and recomputes what it applies. Returns what it returns, such as a Value.
template <std::invocable Describe>
auto recompute(const Describe& describe) {
  const RecomputedSegment segment;
  return describe();
}

// The same if `recomputes`, else only the call.
template <std::invocable Describe>
auto recompute(bool recomputes, const Describe& describe) {
  return recomputes ? recompute(describe) : describe();
}

// A function that calls the layer on values, as a segment of its own each time.
template <std::derived_from<Layer> AnyLayer>
auto recompute(AnyLayer layer) {
  return [layer = std::move(layer)](const auto&... values) { return recompute([&] { return layer(values...); }); };
}

}  // namespace holdfast
