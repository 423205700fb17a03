#include "holdfast/nn/region_losses.h"

#include <limits>

#include "core/json_object.h"
#include "nn/losses/loss_values.h"

namespace holdfast::losses {
namespace {

// Keras's null are all axes of a batch, which is another loss.
std::string axis_member(const AxisList& axis) {
  return JsonObject().integers("axis", axis).members();
}

std::string tversky_options(const TverskyOptions& options) {
  constexpr auto kNoUpperBound = std::numeric_limits<float>::infinity();
  check_range("tversky", "alpha", options.alpha, 0, kNoUpperBound);
  check_range("tversky", "beta", options.beta, 0, kNoUpperBound);
  return JsonObject()
      .number("alpha", options.alpha)
      .number("beta", options.beta)
      .append(axis_member(options.axis))
      .members();
}

// A sample without axes is one number, which is its own sum.
Value sum_of_region(const Value& x, const AxisList& axis) {
  return x.shape().rank() == 0 && axis.empty() ? x : sum(x, axis);
}

}  // namespace

Dice::Dice(DiceOptions options) : BuiltInLoss("dice", axis_member(options.axis)), options_(std::move(options)) {}

// Where targets and outputs are all 0, the loss is 1 and not 0, as in Keras.
Value Dice::losses(const Value& outputs, const Value& targets) const {
  const Value both = sum_of_region(targets * outputs, options_.axis);
  const Value each = sum_of_region(targets, options_.axis) + sum_of_region(outputs, options_.axis);
  return 1.0F - 2.0F * both / (each + kKerasEpsilon);
}

Tversky::Tversky(TverskyOptions options)
    : BuiltInLoss("tversky", tversky_options(options)), options_(std::move(options)) {}

Value Tversky::losses(const Value& outputs, const Value& targets) const {
  const Value both = sum_of_region(targets * outputs, options_.axis);
  // Keras calls these false positives, and the next ones false negatives; the factors are as there.
  const Value missed = sum_of_region(targets * (1.0F - outputs), options_.axis);
  const Value wrong = sum_of_region(outputs * (1.0F - targets), options_.axis);
  return 1.0F - both / (both + options_.alpha * missed + options_.beta * wrong + kKerasEpsilon);
}

}  // namespace holdfast::losses
