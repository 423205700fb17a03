#include "holdfast/nn/generalized_crossentropy.h"

#include <fmt/format.h>

#include <limits>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/loss_values.h"
#include "nn/losses/softmax_row.h"

namespace holdfast::losses {
namespace {

// The formula divides by q, and its limit for 0 is the cross-entropy. Keras takes neither 0 nor 1.
std::string option_of(float q) {
  constexpr const char* kWhat = "categorical_generalized_cross_entropy";
  check_above_zero(kWhat, "q", q);
  if (q >= 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given .q = {}; it is a number between 0 and 1", kWhat, q));
  }
  return JsonObject().number("q", q).members();
}

}  // namespace

CategoricalGeneralizedCrossEntropy::CategoricalGeneralizedCrossEntropy(GeneralizedCrossentropyOptions options)
    : BuiltInLoss("categorical_generalized_cross_entropy", option_of(options.q)), options_(options) {}

Value CategoricalGeneralizedCrossEntropy::losses(const Value& outputs, const Value& targets) const {
  // A product with the one-hot rows would let a NaN of another class in.
  const Value p = sum(where(one_hot(outputs, targets), outputs, 0.0F), {-1});
  // The slope of the power is infinite at 0, and a product of it with a 0 of a softmax would be a NaN.
  return (1.0F - power(maximum(p, std::numeric_limits<float>::min()), options_.q)) / options_.q;
}

Shape CategoricalGeneralizedCrossEntropy::target_shape(const Shape& output) const {
  check_has_classes(name(), output);
  return Shape({output.extents().begin(), output.extents().end() - 1});
}

// There is no from_logits, as in Keras: the formula is a power of probabilities.
void CategoricalGeneralizedCrossEntropy::check_last_activation(std::optional<Activation> last) const {
  check_crossentropy(name(), {.from_logits = false, .accept_any_activation = options_.accept_any_activation}, last,
                     "softmax");
}

}  // namespace holdfast::losses
