// A round of the repetition is an epoch of the stages before. So a shuffle or a map before repeat() draws anew in each
// round, and (seed, epoch) still names every sample.

#include "data/stages/repeat_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

std::int64_t repeated_size(std::int64_t size, std::int64_t count) {
  std::int64_t total = 0;
  if (count <= 0 || __builtin_mul_overflow(size, count, &total)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("repeat() needs a positive count whose product with the {} samples fits into 63 bits, not {}", size,
                    count));
  }
  return total;
}

}  // namespace

RepeatStage::RepeatStage(std::shared_ptr<const Stage> before, std::int64_t count)
    : ChainedStage(before, repeated_size(before->size(), count)), count_(count) {}

std::int64_t RepeatStage::round_of(std::int64_t epoch, std::int64_t position) const {
  // The rounds of all epochs have numbers of their own: epoch 1 goes on where the rounds of epoch 0 end.
  std::int64_t round = 0;
  if (__builtin_mul_overflow(epoch, count_, &round) ||
      __builtin_add_overflow(round, position / before().size(), &round) || round >= kMostEpochs) {
    throw Error(ErrorCode::unsupported,
                fmt::format("repeat({}) in epoch {} has more rounds than the 2^48 that draws tell apart; repeat less",
                            count_, epoch));
  }
  return round;
}

void RepeatStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, round_of(epoch, position), position % before().size(), destination);
}

SampleOrigin RepeatStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  return before().origin(seed, round_of(epoch, position), position % before().size());
}

PositionSet RepeatStage::reach(const PositionSet& positions, std::size_t) const {
  const std::int64_t round = before().size();
  std::vector<PositionSet::Range> wrapped;
  for (const PositionSet::Range& range : positions.ranges()) {
    // As long as a whole round, so it reaches every sample wherever it begins.
    if (range.end - range.begin >= round) return PositionSet::below(round);
    const std::int64_t begin = range.begin % round;
    const std::int64_t end = begin + (range.end - range.begin);
    wrapped.push_back({begin, std::min(end, round)});
    // The range crosses the border of two rounds and goes on at the first sample.
    if (end > round) wrapped.push_back({0, end - round});
  }
  return PositionSet(std::move(wrapped));
}

void RepeatStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "repeat"}, {"count", count_}});
}

}  // namespace holdfast
