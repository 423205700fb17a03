// A trial is a fit() of its own, whose epochs have one step. So each step has the kernels, the sums and the draws of a
// real one, and its loss stands alone.

#include "holdfast/train/find_learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "holdfast/base/error.h"
#include "holdfast/train/trainer.h"

namespace holdfast {
namespace {

void check_trial(const FindLearningRateOptions& options) {
  const auto require = [](bool condition, const std::string& sentence) {
    if (!condition) throw Error(ErrorCode::invalid_argument, fmt::format("find_learning_rate() {}", sentence));
  };
  require(options.lowest > 0 && options.lowest < options.highest && std::isfinite(options.highest),
          fmt::format("from {} to {}: the lowest rate is above 0, and the highest above it", options.lowest,
                      options.highest));
  require(options.steps >= 2, fmt::format("in {} steps: give it at least 2", options.steps));
  require(options.smoothing >= 0 && options.smoothing < 1,
          fmt::format("with smoothing {}: use a number from 0 to below 1", options.smoothing));
  require(options.explodes_at > 1, fmt::format("with explodes_at {}: use a number above 1", options.explodes_at));
}

// Equal steps of the logarithm, from the lowest rate in step 0 to the highest in the last one.
float rate_of(const FindLearningRateOptions& options, std::int64_t step) {
  const double share = static_cast<double>(step) / static_cast<double>(options.steps - 1);
  const double low = options.lowest;
  return static_cast<float>(low * std::pow(options.highest / low, share));
}

// The mean of the losses so far, in which later ones count more.
class SmoothedLoss {
 public:
  explicit SmoothedLoss(double kept) : kept_(kept) {}

  double add(double loss) {
    mean_ = kept_ * mean_ + (1 - kept_) * loss;
    unseen_ *= kept_;
    return mean_ / (1 - unseen_);
  }

 private:
  double kept_;
  double mean_ = 0;
  double unseen_ = 1;  // the part of the mean that is still its initial 0
};

// Batches differ, so the first losses are left out, which are hardly smoothed, and slopes are those of several steps.
std::optional<float> rate_of_steepest_fall(const std::vector<TriedRate>& tried,
                                           const FindLearningRateOptions& options) {
  if (tried.empty()) return std::nullopt;
  const auto loss_at = [&](std::int64_t step) { return tried[static_cast<std::size_t>(step)].smoothed_loss; };
  const std::int64_t lowest = std::ranges::min_element(tried, {}, &TriedRate::smoothed_loss) - tried.begin();
  const auto unsettled = static_cast<std::int64_t>(std::min(1 / (1 - options.smoothing), 1e6));
  const std::int64_t reach = std::max<std::int64_t>(1, options.steps / 40);
  std::optional<float> rate;
  double steepest = 0;
  // All steps are equally far apart in the logarithm, so differences of losses are enough.
  for (std::int64_t step = std::min(unsettled, options.steps / 4) + reach; step + reach <= lowest; ++step) {
    const double slope = loss_at(step + reach) - loss_at(step - reach);
    if (slope >= steepest) continue;
    steepest = slope;
    rate = tried[static_cast<std::size_t>(step)].rate;
  }
  return rate;
}

}  // namespace

LearningRateCurve find_learning_rate(const Model& model, const Optimizer& optimizer, const Loss& loss,
                                     const Dataset& data, const FindLearningRateOptions& options) {
  return find_learning_rate(model, optimizer, std::vector<LossHandle>{loss}, data, options);
}

LearningRateCurve find_learning_rate(const Model& model, const Optimizer& optimizer,
                                     const std::vector<LossHandle>& losses, const Dataset& data,
                                     const FindLearningRateOptions& options) {
  check_trial(options);
  const std::unique_ptr<Optimizer> tried = optimizer.with_learning_rate(options.lowest);
  if (tried == nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("find_learning_rate() cannot change the rate of the optimizer {}; override its "
                            "with_learning_rate()",
                            optimizer.name()));
  }
  Replica alone = Replica::alone({.seed = options.seed, .shards = options.shards});
  // Copies of a model share its weights, but not this one.
  Trainer trainer(alone, model.with_frozen_layers(model.frozen_layers()), *tried, losses);
  LearningRateCurve curve;
  SmoothedLoss mean(options.smoothing);
  double lowest = 0;
  // A loss that is not finite is a result here, and no failure.
  const FitOptions fit = {.epochs = options.steps,
                          .steps_per_epoch = 1,
                          .when_not_finite = WhenNotFinite::go_on,
                          .check_gradients = {.every = 0}};
  for (const TrainingStep& at : trainer.steps(data, fit)) {
    const auto step = static_cast<std::int64_t>(curve.tried.size());
    const double loss = at.logs.at("loss");
    const double smoothed = mean.add(loss);
    curve.tried.push_back({.rate = rate_of(options, step), .loss = loss, .smoothed_loss = smoothed});
    lowest = step == 0 ? smoothed : std::min(lowest, smoothed);
    // A loss below 0 has no multiple that is higher.
    curve.has_exploded = !std::isfinite(smoothed) || (lowest > 0 && smoothed > options.explodes_at * lowest);
    if (curve.has_exploded) {
      at.context.stop_training();
    } else if (step + 1 < options.steps) {
      // The update of this step has been made, so this is the rate of the next one.
      at.context.set_learning_rate(rate_of(options, step + 1));
    }
  }
  if (curve.has_exploded) curve.tried.pop_back();
  curve.suggested = rate_of_steepest_fall(curve.tried, options);
  return curve;
}

}  // namespace holdfast
