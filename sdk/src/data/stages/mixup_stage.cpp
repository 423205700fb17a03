// Others mix a batch with a permutation of itself, so what a sample becomes depends on the batch. Here the partner is
// drawn from the epoch by the position of the sample, and is loaded like it: the same on any number of replicas.

#include "data/stages/mixup_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr float kMostAlpha = 1000;

Error refused_mixup(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("mixup(): {}", reason));
}

void check_arrays(const SampleLayouts& layouts) {
  for (const ArraySpec& input : layouts.inputs.arrays()) {
    if (input.dtype != DType::f32 && input.dtype != DType::u8) {
      throw refused_mixup(fmt::format("the input {} is not of f32 or u8, so it has no mean", input.to_string()));
    }
  }
  const std::size_t targets = layouts.targets.arrays().size() - (layouts.has_weights ? 1 : 0);
  for (const ArraySpec& target : layouts.targets.arrays().first(targets)) {
    if (target.dtype != DType::f32 || target.shape.rank() == 0) {
      throw refused_mixup(
          fmt::format("the target {} may be the number of a class, which has no mean; use targets of "
                      "f32 [classes], such as .one_hot = true of read_pictures()",
                      target.to_string()));
    }
  }
}

void mix(std::span<float> own, std::span<const float> other, float share) {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = share * own[i] + (1 - share) * other[i];
}

void mix(std::span<std::uint8_t> own, std::span<const std::uint8_t> other, float share) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    const float mean = share * static_cast<float>(own[i]) + (1 - share) * static_cast<float>(other[i]);
    own[i] = static_cast<std::uint8_t>(mean + 0.5F);
  }
}

// The first `arrays` arrays of a row.
void mix_rows(const RowLayout& layout, std::size_t arrays, std::span<float> own, std::span<float> other, float share) {
  const ArrayRow into(layout, own);
  const ArrayRow from(layout, other);
  for (std::size_t array = 0; array < arrays; ++array) {
    if (layout.arrays()[array].dtype == DType::f32) {
      mix(into.elements<float>(array), from.elements<float>(array), share);
    } else {
      mix(into.elements<std::uint8_t>(array), from.elements<std::uint8_t>(array), share);
    }
  }
}

// The logarithm of a draw from the gamma distribution with this shape, up to a constant factor.
double draw_log_gamma(double shape, Random& random) {
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    const double u = 1 - static_cast<double>(random.uniform());
    if (v <= 0 || std::log(u) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double log_gamma = std::log(d * v);
    // A gamma of shape a is one of shape a + 1, times u^(1/a).
    return shape < 1 ? log_gamma + std::log(1 - static_cast<double>(random.uniform())) / shape : log_gamma;
  }
}

}  // namespace

float draw_share(double alpha, Random& random) {
  const double own = draw_log_gamma(alpha, random);
  const double other = draw_log_gamma(alpha, random);
  return static_cast<float>(1 / (1 + std::exp(other - own)));
}

MixupStage::MixupStage(std::shared_ptr<const Stage> before, float alpha)
    : ChainedStage(before, before->size()), alpha_(alpha) {
  if (!(alpha > 0 && alpha <= kMostAlpha)) {
    throw refused_mixup(fmt::format("alpha lies above 0 and is at most {}, so {} cannot work", kMostAlpha, alpha));
  }
  check_arrays(layouts());
}

void MixupStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  Random random(seed, Purpose::augmentation, draw_major(*this, epoch), static_cast<std::uint64_t>(position));
  const auto partner = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size())));
  const float share = draw_share(alpha_, random);
  before().load(seed, epoch, position, destination);
  if (partner == position) return;
  std::vector<float> features(feature_words());
  std::vector<float> targets(target_words());
  before().load(seed, epoch, partner, {.features = features, .targets = targets});
  mix_rows(layouts().inputs, layouts().inputs.arrays().size(), destination.features, features, share);
  const std::size_t mixed_targets = layouts().targets.arrays().size() - (layouts().has_weights ? 1 : 0);
  mix_rows(layouts().targets, mixed_targets, destination.targets, targets, share);
}

void MixupStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "mixup"}, {"alpha", alpha_}});
}

}  // namespace holdfast
