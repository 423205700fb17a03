// A policy is made of the changes that a program could name itself, so a chosen change has the pixels of that change
// alone. Changes in a row write to two buffers in turn, as rows of the samples' own layout: u8 is rounded after each.

#include "holdfast/data/picture_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "data/pictures/picture_arrays.h"
#include "data/pictures/pixel_change.h"
#include "data/stages/mixup_stage.h"
#include "holdfast/base/error.h"
#include "holdfast/data/picture_colors.h"
#include "holdfast/data/picture_warps.h"

namespace holdfast {
namespace {

// More changes or chains than that are mistakes: the time of a picture grows with their product.
constexpr int kMostPolicyNumber = 100;
constexpr float kMostPolicyAlpha = 1000;
constexpr std::int64_t kColorChannels = 3;

using PolicyChanges = std::vector<PictureChange>;

// The change of colors is the last one, so that it can be left out.
PolicyChanges policy_changes(float strength, float max_value) {
  const DrawnRange up_to{0, strength};
  // As in RandAugment of Keras, where more strength keeps more bits.
  const int bits = std::max(1, static_cast<int>(8 * strength));
  return {random_shear({.x = up_to, .y = up_to}),
          augment({.shift_rows = strength, .shift_columns = strength}),
          augment({.rotate = strength}),
          augment({.brightness = strength, .max_value = max_value}),
          augment({.contrast = strength, .max_value = max_value}),
          random_sharpness(up_to, max_value),
          random_posterization(bits, bits, max_value),
          solarization({.addition = up_to, .threshold = up_to, .max_value = max_value}),
          auto_contrast(max_value),
          equalization(max_value),
          random_color_degeneration(up_to, max_value)};
}

// The last change needs three channels. Others take any number, so the rest of the order is the same for all pictures.
std::size_t applicable(const PolicyChanges& changes, const ArrayRow& picture) {
  const bool has_colors = picture.layout().arrays()[0].shape[2] == kColorChannels;
  return has_colors ? changes.size() : changes.size() - 1;
}

void check_count(const std::string& function, const std::string& option, int count) {
  if (count >= 1 && count <= kMostPolicyNumber) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}(): {} is 1 to {}, not {}", function, option, kMostPolicyNumber, count));
}

// A row of the layout of `like`, and another one to which the next change is written.
class ChangedPicture {
 public:
  explicit ChangedPicture(const ArrayRow& like)
      : layout_(like.layout()), now_(layout_.words()), next_(layout_.words()) {}

  void begin_with(const ArrayRow& picture) { write_floats(floats_of(picture), row()); }
  void apply(const PictureChange& change, Random& random) {
    change.apply(row(), ArrayRow(layout_, next_), random);
    std::swap(now_, next_);
  }
  ArrayRow row() { return ArrayRow(layout_, now_); }

 private:
  // That of the samples, which outlives each call.
  const RowLayout& layout_;
  std::vector<float> now_;
  std::vector<float> next_;
};

PictureChange policy(const std::string& function, std::string name,
                     std::function<void(const ArrayRow&, const ArrayRow&, Random&)> apply) {
  const auto output = [function](const ArraySpec& input) {
    check_picture(function, input);
    return input;
  };
  return {.name = std::move(name), .output = output, .apply = std::move(apply), .draws = true};
}

// Weights that sum to 1, from logarithms of draws of the gamma distribution: a draw from the Dirichlet distribution.
// The largest logarithm is subtracted first, so one weight is 1 before the division and none overflows, however small
// alpha is. The others may round to 0.
std::vector<double> drawn_weights(int count, double alpha, Random& random) {
  std::vector<double> weights;
  for (int i = 0; i < count; ++i) weights.push_back(draw_log_gamma(alpha, random));
  const double largest = std::ranges::max(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

void mix_chains(const AugMixOptions& options, const PolicyChanges& changes, const ArrayRow& from, const ArrayRow& into,
                Random& random) {
  const std::vector<double> weights = drawn_weights(options.chains, options.alpha, random);
  const float share = draw_share(options.alpha, random);
  std::vector<float> pixels = floats_of(from);
  for (float& pixel : pixels) pixel *= share;
  ChangedPicture chain(from);
  // The last choice leaves the picture as it is, and comes as often as any other.
  const std::size_t choices = applicable(changes, from) + 1;
  for (const double weight : weights) {
    // Each chain begins with the picture itself, and not with what the chain before it made.
    chain.begin_with(from);
    for (int i = 0; i < options.depth; ++i) {
      const std::size_t choice = random.below(choices);
      if (choice + 1 < choices) chain.apply(changes[choice], random);
    }
    const std::vector<float> changed = floats_of(chain.row());
    // Chains are added one after another, in their order: a sum in another order would have other bits.
    const float part = (1 - share) * static_cast<float>(weight);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] += part * changed[i];
  }
  const float most = from.layout().arrays()[0].dtype == DType::u8 ? 255.0F : options.max_value;
  for (float& pixel : pixels) pixel = std::clamp(pixel, 0.0F, most);
  write_floats(pixels, into);
}

}  // namespace

PictureChange rand_augment(const RandAugmentOptions& options) {
  check_count("rand_augment", "changes", options.changes);
  check_number("rand_augment", "strength", options.strength, 0, 1);
  const auto changes = std::make_shared<const PolicyChanges>(policy_changes(options.strength, options.max_value));
  const auto apply = [options, changes](const ArrayRow& from, const ArrayRow& into, Random& random) {
    ChangedPicture picture(from);
    picture.begin_with(from);
    const std::size_t choices = applicable(*changes, from);
    for (int i = 0; i < options.changes; ++i) picture.apply((*changes)[random.below(choices)], random);
    write_floats(floats_of(picture.row()), into);
  };
  return policy("rand_augment",
                fmt::format("rand_augment changes {}, strength {}, max_value {}", options.changes, options.strength,
                            options.max_value),
                apply);
}

PictureChange aug_mix(const AugMixOptions& options) {
  check_count("aug_mix", "chains", options.chains);
  check_count("aug_mix", "depth", options.depth);
  check_number("aug_mix", "strength", options.strength, 0, 1);
  if (!(options.alpha > 0 && options.alpha <= kMostPolicyAlpha)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("aug_mix(): alpha lies above 0 and is at most {}, not {}",
                                                         kMostPolicyAlpha, options.alpha));
  }
  const auto changes = std::make_shared<const PolicyChanges>(policy_changes(options.strength, options.max_value));
  const auto apply = [options, changes](const ArrayRow& from, const ArrayRow& into, Random& random) {
    mix_chains(options, *changes, from, into, random);
  };
  return policy("aug_mix",
                fmt::format("aug_mix chains {}, depth {}, strength {}, alpha {}, max_value {}", options.chains,
                            options.depth, options.strength, options.alpha, options.max_value),
                apply);
}

}  // namespace holdfast
