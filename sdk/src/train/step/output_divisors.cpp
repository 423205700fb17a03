// What losses are divided by where the samples, or one sum of their weights, do not say it: outputs with weights of
// their own, and targets that a loss ignores. The gradients of all outputs are one sum, so the divisors must be known
// before the backward pass. Each shard adds up its own on the host, in double; the sums of all shards are added in the
// order of the shard tree, and every shard scales the gradients of its losses with the same numbers.
// docs/decisions/sample-weights.md

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/base/elements.h"
#include "train/context/array_places.h"
#include "train/step/model_trainable.h"

namespace holdfast {
namespace {

std::optional<Shape> weights_of(const RowLayout* targets, bool has_sample_weights) {
  return has_sample_weights ? std::optional(targets->arrays().back().shape) : std::nullopt;
}

// The loss of an output that all samples mask has no gradient. A divisor that is not finite makes the gradient so, and
// the step is not applied.
float scale_for(float divisor) {
  if (!std::isfinite(divisor)) return std::numeric_limits<float>::quiet_NaN();
  return divisor > 0 ? 1.0F / divisor : 0.0F;
}

// The part of the rows that one output takes.
struct OutputRows {
  std::span<const float> rows;
  std::size_t row_words = 0;
  std::size_t samples = 0;
  std::size_t first_weight = 0;  // a word of a row
  std::size_t weights = 0;       // of a sample; 0: none, so each sample counts 1
  std::size_t first_target = 0;
  DType target_type = DType::f32;
  std::size_t targets = 1;  // of a sample

  float weight(std::size_t sample, std::size_t index) const {
    return weights == 0 ? 1.0F : rows[sample * row_words + first_weight + index];
  }
};

// Each in double, in the order of the samples: a float would lose single samples of a large shard.
double sum_of_weights(const OutputRows& part) {
  double sum = 0;
  for (std::size_t sample = 0; sample < part.samples; ++sample) {
    for (std::size_t index = 0; index < std::max<std::size_t>(part.weights, 1); ++index) {
      sum += static_cast<double>(part.weight(sample, index));
    }
  }
  return sum;
}

// The same, where a weight counts by the share of its targets that the loss does not ignore.
double sum_of_weights_without(const OutputRows& part, float ignored) {
  const std::size_t groups = std::max<std::size_t>(part.weights, 1);
  const std::size_t each = part.targets / groups;
  double sum = 0;
  with_element(part.target_type, [&]<typename Element>(Element) {
    for (std::size_t sample = 0; sample < part.samples; ++sample) {
      const auto* const first =
          reinterpret_cast<const std::byte*>(part.rows.data() + sample * part.row_words + part.first_target);
      for (std::size_t group = 0; group < groups; ++group) {
        std::size_t counted = 0;
        for (std::size_t target = group * each; target < (group + 1) * each; ++target) {
          const auto value = static_cast<float>(Element::load(first + target * Element::kBytes));
          counted += value == ignored ? 0 : 1;
        }
        const double share = static_cast<double>(counted) / static_cast<double>(each);
        sum += static_cast<double>(part.weight(sample, group)) * share;
      }
    }
  });
  return sum;
}

}  // namespace

const RowLayout& plain_row_layout() {
  static const RowLayout layout({ArraySpec()});
  return layout;
}

std::size_t ModelTrainable::divisor_count(const RowLayout* targets, bool has_sample_weights) const {
  const bool has_own = evaluation_.has_own_divisors(weights_of(targets, has_sample_weights));
  return has_own ? evaluation_.divisor_count() : 0;
}

// The weights of a row follow each other as its targets do, which may be in another order than the outputs.
void ModelTrainable::find_weight_offsets(std::span<const Shape> shapes, std::span<const std::size_t> places,
                                         std::vector<std::size_t>& offsets) {
  offsets.assign(places.size(), 0);
  for (std::size_t output = 0; output < places.size(); ++output) {
    for (std::size_t other = 0; other < places.size(); ++other) {
      if (places[other] >= places[output]) continue;
      offsets[output] += static_cast<std::size_t>(shapes[other].element_count());
    }
  }
}

void ModelTrainable::set_weighting(Columns& columns, const ShardBatch& batch) const {
  OutputSums::Weighting& weighting = columns.weighting;
  const Shape* const read = batch.has_sample_weights ? &batch.target_layout->arrays().back().shape : nullptr;
  const bool is_known = read == nullptr ? !columns.weights_read : columns.weights_read == *read;
  // Only for other data: a step allocates nothing.
  if (!is_known) {
    columns.weights_read = weights_of(batch.target_layout, batch.has_sample_weights);
    weighting.weights = read == nullptr ? std::vector<Shape>() : evaluation_.shapes_of_weights(*read);
  }
  weighting.has_own_divisors = evaluation_.has_own_divisors(columns.weights_read);
  // Where all outputs share the weights, the sum of the gradients is divided later: no shard knows the others' weights.
  const bool is_divided_here = read == nullptr && !weighting.has_own_divisors;
  const float scale = is_divided_here ? 1.0F / static_cast<float>(batch.batch_samples) : 1.0F;
  weighting.scales.assign(model_.outputs().size(), scale);
  if (batch.divisors.empty()) return;
  const auto of_losses = batch.divisors.subspan(1, model_.outputs().size());
  std::ranges::transform(of_losses, weighting.scales.begin(), scale_for);
}

void ModelTrainable::sum_divisors(const ShardBatch& batch, std::span<float> divisors) {
  std::ranges::fill(divisors, 0.0F);
  if (batch.samples == 0) return;
  std::vector<float> copy;
  std::span<const float> rows = batch.targets;
  if (batch.is_on_device) {
    copy.resize(rows.size());
    memory().copy_to_host(rows, copy);
    rows = copy;
  }
  const RowLayout& layout = batch.target_layout == nullptr ? plain_row_layout() : *batch.target_layout;
  const std::size_t targets = layout.arrays().size() - (batch.has_sample_weights ? 1 : 0);
  const std::optional<Shape> weights = weights_of(batch.target_layout, batch.has_sample_weights);
  std::vector<Shape> shapes;
  if (weights) shapes = evaluation_.shapes_of_weights(*weights);
  const std::size_t outputs = model_.outputs().size();
  std::vector<std::size_t> places, offsets(outputs);
  find_array_places(layout.arrays().first(targets), model_.outputs(), places);
  if (evaluation_.are_of_each_output(weights)) find_weight_offsets(shapes, places, offsets);
  bool has_any = false;
  for (std::size_t output = 0; output < outputs; ++output) {
    OutputRows part{.rows = rows,
                    .row_words = rows.size() / static_cast<std::size_t>(batch.samples),
                    .samples = static_cast<std::size_t>(batch.samples),
                    .first_target = layout.first_word(places[output]),
                    .target_type = layout.arrays()[places[output]].dtype,
                    .targets = evaluation_.target_elements(output)};
    if (weights) {
      part.first_weight = layout.first_word(targets) + offsets[output];
      part.weights = static_cast<std::size_t>(shapes[output].element_count());
    }
    const std::optional<float> ignored = evaluation_.loss(output).get()->ignored_target();
    const double of_metrics = sum_of_weights(part);
    const double of_loss = ignored ? sum_of_weights_without(part, *ignored) : of_metrics;
    divisors[1 + output] = static_cast<float>(of_loss);
    divisors[1 + outputs + output] = static_cast<float>(of_metrics);
    has_any = has_any || of_loss > 0;
  }
  // The first sum is the loss of a single output. With several outputs it has penalties, which need samples to count.
  if (outputs == 1) divisors[0] = divisors[1];
  if (outputs > 1 && has_any) divisors[0] = static_cast<float>(batch.samples);
}

}  // namespace holdfast
