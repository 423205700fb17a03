// The binary loss computes the probability of the wrong answer, 1 - q, without a difference of numbers near 1 where
// scores are given. Its power has a gradient at 0 only if gamma is at least 1, so it is kept above 0.

#include "holdfast/nn/focal_losses.h"

#include <limits>

#include "core/json_object.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/loss_values.h"
#include "nn/losses/softmax_row.h"

namespace holdfast::losses {
namespace {

constexpr auto kUnbounded = std::numeric_limits<float>::infinity();

// Alpha is the share of one of two classes in the binary loss, so at most 1. In the other it is a plain factor.
std::string common_options(std::string_view loss, const auto& options, float highest_alpha) {
  check_range(loss, "alpha", options.alpha, 0, highest_alpha);
  check_range(loss, "gamma", options.gamma, 0, kUnbounded);
  check_range(loss, "label_smoothing", options.label_smoothing, 0, 1);
  return JsonObject()
      .number("alpha", options.alpha)
      .number("gamma", options.gamma)
      .boolean("from_logits", options.from_logits)
      .number("label_smoothing", options.label_smoothing)
      .members();
}

std::string binary_options(const BinaryFocalCrossentropyOptions& options) {
  const std::string common = common_options("binary_focal_crossentropy", options, 1);
  return JsonObject().boolean("apply_class_balancing", options.apply_class_balancing).append(common).members();
}

void check_activation_of(const std::string& loss, const auto& options, std::optional<Activation> last,
                         std::string_view fitting) {
  check_crossentropy(loss, {.from_logits = options.from_logits, .accept_any_activation = options.accept_any_activation},
                     last, fitting);
}

// wrong^gamma
Value focal_factor(const Value& wrong, float gamma) {
  // Below the epsilon the gradient is that of a constant, 0, where a gamma below 1 would make it infinite at 0.
  return power(maximum(wrong, kKerasEpsilon), gamma);
}

}  // namespace

BinaryFocalCrossentropy::BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options)
    : BuiltInLoss("binary_focal_crossentropy", binary_options(options)), options_(options) {}

// With a gamma of 0 the focal factor is 1. It is left out then, so that no gradient of a power is computed.
Value BinaryFocalCrossentropy::losses(const Value& outputs, const Value& targets) const {
  const Value t = smoothed(targets, options_.label_smoothing, 2);
  const bool from_logits = options_.from_logits;
  const Value p = from_logits ? sigmoid(outputs) : outputs;
  const Value not_p = from_logits ? sigmoid(-outputs) : 1.0F - outputs;
  Value each = binary_crossentropy(outputs, t, from_logits);
  if (options_.gamma > 0) each = focal_factor(t * not_p + (1.0F - t) * p, options_.gamma) * each;
  if (options_.apply_class_balancing) each = (t * options_.alpha + (1.0F - t) * (1 - options_.alpha)) * each;
  return each;
}

void BinaryFocalCrossentropy::check_last_activation(std::optional<Activation> last) const {
  check_activation_of(name(), options_, last, "sigmoid");
}

CategoricalFocalCrossentropy::CategoricalFocalCrossentropy(CategoricalFocalCrossentropyOptions options)
    : BuiltInLoss("categorical_focal_crossentropy",
                  common_options("categorical_focal_crossentropy", options, kUnbounded)),
      options_(options) {}

Value CategoricalFocalCrossentropy::losses(const Value& outputs, const Value& targets) const {
  const Value t = smoothed(targets, options_.label_smoothing, targets.shape().extents().back());
  const Value log_p = log_probabilities(outputs, options_.from_logits);
  Value each = -options_.alpha * t * log_p;
  // Near a p of 1 this difference has few digits of 1 - p. The loss is almost 0 there, so they do not matter.
  if (options_.gamma > 0) each = focal_factor(1.0F - exponential(log_p), options_.gamma) * each;
  return sum(each, {-1});
}

Shape CategoricalFocalCrossentropy::target_shape(const Shape& output) const {
  check_has_classes(name(), output);
  return output;
}

void CategoricalFocalCrossentropy::check_last_activation(std::optional<Activation> last) const {
  check_activation_of(name(), options_, last, "softmax");
}

}  // namespace holdfast::losses
