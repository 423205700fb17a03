// Others mix a batch with a permutation of itself, so what a sample becomes depends on the batch. Here the partner is
// drawn from the epoch by the position of the sample, and is loaded like it: the same on any number of replicas.
// See docs/decisions/pictures.md.

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

Error refused_mixing(const char* name, const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("{}(): {}", name, reason));
}

void check_arrays(const char* name, const SampleLayouts& layouts) {
  for (const ArraySpec& input : layouts.inputs.arrays()) {
    if (input.dtype != DType::f32 && input.dtype != DType::u8) {
      throw refused_mixing(name, fmt::format("the input {} is not of f32 or u8, so it has no mean", input.to_string()));
    }
  }
  const std::size_t targets = layouts.targets.arrays().size() - (layouts.has_weights ? 1 : 0);
  // The weight, if there is one, is the last array and stays that of the sample itself.
  for (const ArraySpec& target : layouts.targets.arrays().first(targets)) {
    if (target.dtype != DType::f32 || target.shape.rank() == 0) {
      throw refused_mixing(name,
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
    // Rounded to the nearest. A mean of bytes never leaves their range.
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

}  // namespace

// The names d, c, x, v and u are those of the paper, see the header.
double draw_log_gamma(double shape, Random& random) {
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    // In (0, 1], so that its logarithm is finite.
    const double u = 1 - static_cast<double>(random.uniform());
    if (v <= 0 || std::log(u) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double log_gamma = std::log(d * v);
    // A gamma of shape a is one of shape a + 1, times u^(1/a).
    return shape < 1 ? log_gamma + std::log(1 - static_cast<double>(random.uniform())) / shape : log_gamma;
  }
}

float draw_share(double alpha, Random& random) {
  const double own = draw_log_gamma(alpha, random);
  const double other = draw_log_gamma(alpha, random);
  // own / (own + other) by logarithms: both may be too small for a double, and their ratio is not.
  return static_cast<float>(1 / (1 + std::exp(other - own)));
}

MixingStage::MixingStage(std::shared_ptr<const Stage> before, const char* name, float alpha)
    : ChainedStage(before, before->size()), name_(name), alpha_(alpha) {
  if (!(alpha > 0 && alpha <= kMostAlpha)) {
    throw refused_mixing(name,
                         fmt::format("alpha lies above 0 and is at most {}, so {} cannot work", kMostAlpha, alpha));
  }
  check_arrays(name, layouts());
}

void MixingStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  Random random = draws_of(seed, epoch, position);
  const std::int64_t partner = draw_partner(random);
  const float share = draw_share(alpha_, random);
  before().load(seed, epoch, position, destination);
  // A sample that is mixed with itself is itself, in either kind of mixing.
  if (partner == position) return;
  std::vector<float> features(feature_words());
  std::vector<float> targets(target_words());
  before().load(seed, epoch, partner, {.features = features, .targets = targets});
  // The share of the targets is what the inputs have in fact: a rectangle of cutmix() has whole pixels.
  const float own = mix_inputs({.share = share, .random = random}, destination.features, features);
  const std::size_t mixed_targets = layouts().targets.arrays().size() - (layouts().has_weights ? 1 : 0);
  mix_rows(layouts().targets, mixed_targets, destination.targets, targets, own);
}

void MixingStage::expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  Random random = draws_of(seed, epoch, position);
  const std::int64_t partner = draw_partner(random);
  before().expect(seed, epoch, position);
  if (partner != position) before().expect(seed, epoch, partner);
}

void MixingStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", name_}, {"alpha", alpha_}});
}

MixupStage::MixupStage(std::shared_ptr<const Stage> before, float alpha)
    : MixingStage(std::move(before), "mixup", alpha) {}

float MixupStage::mix_inputs(PairDraws draws, std::span<float> own, std::span<float> other) const {
  mix_rows(layouts().inputs, layouts().inputs.arrays().size(), own, other, draws.share);
  return draws.share;
}

CutmixStage::CutmixStage(std::shared_ptr<const Stage> before, float alpha)
    : MixingStage(std::move(before), "cutmix", alpha) {
  const std::span<const ArraySpec> inputs = layouts().inputs.arrays();
  if (inputs.size() == 1 && inputs[0].shape.rank() == 3) return;
  throw refused_mixing("cutmix", fmt::format("it takes samples of one picture [height, width, channels], and these "
                                             "have {} inputs, the first of them {}; mixup() takes any",
                                             inputs.size(), inputs[0].to_string()));
}

float CutmixStage::mix_inputs(PairDraws draws, std::span<float> own, std::span<float> other) const {
  const Shape& shape = feature_shape();
  // The area is 1 - share of the picture, and sides have whole pixels.
  const float part = std::sqrt(1 - draws.share);
  const auto cut = [&](std::int64_t side) { return std::lround(part * static_cast<float>(side)); };
  const std::int64_t rows = cut(shape[0]);
  const std::int64_t columns = cut(shape[1]);
  const auto place = [&](std::int64_t places) {
    return static_cast<std::int64_t>(draws.random.below(static_cast<std::uint64_t>(places + 1)));
  };
  // The row is drawn before the column: the bits of present runs depend on this order.
  const std::int64_t first_row = place(shape[0] - rows);
  const std::int64_t first_column = place(shape[1] - columns);
  const ArrayRow into(layouts().inputs, own);
  const ArrayRow from(layouts().inputs, other);
  const auto copy = [&](auto to, auto source) {
    for (std::int64_t row = first_row; row < first_row + rows; ++row) {
      const auto at = static_cast<std::size_t>((row * shape[1] + first_column) * shape[2]);
      std::ranges::copy(source.subspan(at, static_cast<std::size_t>(columns * shape[2])), to.subspan(at).begin());
    }
  };
  if (layouts().inputs.arrays()[0].dtype == DType::f32) {
    copy(into.elements<float>(0), from.elements<float>(0));
  } else {
    copy(into.elements<std::uint8_t>(0), from.elements<std::uint8_t>(0));
  }
  return 1 - static_cast<float>(rows * columns) / static_cast<float>(shape[0] * shape[1]);
}

}  // namespace holdfast
