// Each window is permuted by a draw of its own, so a position can be looked up in any order and from any epoch. A
// shuffle buffer, as other frameworks have it, would be state that a savepoint must hold. See docs/decisions/stages.md.

#include "data/stages/shuffle_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "holdfast/base/error.h"

namespace holdfast {

ShuffleStage::ShuffleStage(std::shared_ptr<const Stage> before, std::int64_t window)
    : ChainedStage(before, before->size()), window_(std::min(window, std::max<std::int64_t>(1, before->size()))) {
  // `window_` is already computed here, and is wrong for such a window. Nothing has used it.
  if (window <= 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("shuffle() needs a window of one sample or more, not {}", window));
  }
  // An order has 4 bytes a sample. With 8 a full shuffle of a large data set would take twice the memory.
  if (window_ > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("shuffle() takes windows of up to 4294967295 samples, not {}; pass a smaller window", window_));
  }
}

SampleOrder ShuffleStage::draw_order(const Key& key) const {
  // The last window of an epoch may be smaller.
  SampleOrder order(static_cast<std::size_t>(std::min(window_, size() - key.window * window_)));
  std::iota(order.begin(), order.end(), 0U);
  Random random(key.seed, Purpose::shuffle, draw_major(*this, key.epoch), static_cast<std::uint64_t>(key.window));
  permute(std::span(order), random);
  return order;
}

std::int64_t ShuffleStage::position_before(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  const Key key{.seed = seed, .epoch = epoch, .window = position / window_};
  const std::int64_t begin = key.window * window_;
  // The order is drawn when its first position is asked for, by whichever thread comes first. The bits are the same.
  return begin + orders_.at(key, static_cast<std::size_t>(position - begin), [&] { return draw_order(key); });
}

void ShuffleStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position_before(seed, epoch, position), destination);
}

SampleOrigin ShuffleStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  return before().origin(seed, epoch, position_before(seed, epoch, position));
}

// Each window that contains one of the positions, as a whole.
PositionSet ShuffleStage::reach(const PositionSet& positions, std::size_t) const {
  std::vector<PositionSet::Range> windows;
  for (const PositionSet::Range& range : positions.ranges()) {
    const std::int64_t last_window = (range.end - 1) / window_;
    // Computed from what is left: the end of the last window may not fit into 63 bits.
    const std::int64_t left = size() - last_window * window_;
    windows.push_back({range.begin / window_ * window_, last_window * window_ + std::min(window_, left)});
  }
  return PositionSet(std::move(windows));
}

void ShuffleStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "shuffle"}, {"window", window_}});
}

}  // namespace holdfast
