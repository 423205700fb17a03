// A copy of a sample has finite numbers in any model that trains on the sample itself. A sample of zeros may not: a
// logarithm of 0, times the weight 0, is NaN. Weights travel as those of the user do, so divisors, metrics and devices
// know nothing of padding. docs/decisions/sample-weights.md

#include "data/batches/padded_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

std::int64_t filled_size(std::int64_t samples, std::int64_t batch) {
  const std::int64_t missing = (batch - samples % batch) % batch;
  std::int64_t size = 0;
  if (__builtin_add_overflow(samples, missing, &size)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} samples in full batches of {} are more than 63 bits can count", samples, batch));
  }
  return size;
}

// Only batch() adds this stage, and class weights alone may follow it.
const PaddedBatchStage* padding_stage(const Stage& last) {
  const Stage* stage = &last;
  while (stage->kind() == StageKind::class_weights) stage = stage->parents().front();
  return dynamic_cast<const PaddedBatchStage*>(stage);
}

}  // namespace

PaddedBatchStage::PaddedBatchStage(std::shared_ptr<const Stage> before, std::int64_t batch)
    : ChainedStage(before, weighted_layouts(before->layouts()), filled_size(before->size(), batch)) {
  HOLDFAST_ASSERT(this->before().size() > 0);
}

std::span<float> PaddedBatchStage::targets_before(std::span<float> targets) const {
  // Words that belong to no element must not hold what another sample left there: samples are compared by digest.
  std::ranges::fill(targets, 0.0F);
  return targets.first(before().target_words());
}

void PaddedBatchStage::weigh(std::int64_t position, std::span<float> targets) const {
  const bool is_padding = position >= before().size();
  // The user's weights stay. Samples that had none get 1.
  if (!is_padding && before().layouts().has_weights) return;
  const RowLayout& layout = layouts().targets;
  // weighted_layouts() has the weights last.
  const std::size_t last = layout.arrays().size() - 1;
  const auto count = static_cast<std::size_t>(layout.arrays()[last].shape.element_count());
  std::ranges::fill(targets.subspan(layout.first_word(last), count), is_padding ? 0.0F : 1.0F);
}

void PaddedBatchStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position_before(position),
                {.features = destination.features, .targets = targets_before(destination.targets)});
  weigh(position, destination.targets);
}

void PaddedBatchStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                                    std::span<float> targets) const {
  before().load_targets(seed, epoch, position_before(position), targets_before(targets));
  weigh(position, targets);
}

PositionSet PaddedBatchStage::reach(const PositionSet& positions, std::size_t) const {
  const std::int64_t size = before().size();
  std::vector<PositionSet::Range> reached;
  for (const PositionSet::Range& range : positions.ranges()) {
    // May be empty or reversed where a range holds padding alone. PositionSet drops such ranges.
    reached.push_back({range.begin, std::min(range.end, size)});
    // All padding is copies of the last sample.
    if (range.end > size) reached.push_back({size - 1, size});
  }
  return PositionSet(std::move(reached));
}

void PaddedBatchStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "padded_batches"}, {"padding", padding()}});
}

Dataset without_padding(const Dataset& data) {
  const PaddedBatchStage* const stage = padding_stage(*data.last_stage());
  if (stage == nullptr) return data;
  return same_batches(data, stage->unpadded());
}

std::int64_t Dataset::padding() const {
  const PaddedBatchStage* const stage = padding_stage(*stage_);
  return stage == nullptr ? 0 : stage->padding();
}

Dataset Dataset::batch(std::int64_t samples, BatchOptions options) const {
  if (samples < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("batch() needs a number of at least 1, not {}", samples));
  }
  if (batch_size_ != 0) throw Error(ErrorCode::invalid_argument, "batch() is given twice; batches hold single samples");
  if (options.drop_remainder && options.pad_remainder) {
    throw Error(ErrorCode::invalid_argument,
                "batch() is to drop the last samples of an epoch and to pad them; set one of drop_remainder and "
                "pad_remainder");
  }
  if (options.pad_remainder && is_kept_on_device_) {
    throw Error(
        ErrorCode::invalid_argument,
        "batch() pads with samples of weight 0, which the host makes, and keep_on_device() copies the source as "
        "it is; leave out one of the two");
  }
  Dataset result = *this;
  result.batch_size_ = samples;
  result.drop_remainder_ = options.drop_remainder;
  // Without a remainder there is nothing to weigh, and the description stays that of plain batches.
  if (options.pad_remainder && size() % samples != 0) {
    result.stage_ = std::make_shared<PaddedBatchStage>(stage_, samples);
  }
  return result;
}

}  // namespace holdfast
