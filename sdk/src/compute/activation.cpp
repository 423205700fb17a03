#include "holdfast/compute/activation.h"

#include <fmt/format.h>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {

// Configurations in savepoints have these names, so they never change.
std::string_view name(Activation activation) {
  switch (activation) {
    case Activation::linear:
      return "linear";
    case Activation::relu:
      return "relu";
    case Activation::tanh:
      return "tanh";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::softmax:
      return "softmax";
    case Activation::gelu:
      return "gelu";
  }
  // Without a default case above, the compiler names the enumerator that is missing.
  HOLDFAST_ASSERT(false);
}

Activation activation_from_name(std::string_view text) {
  for (const Activation activation : {Activation::linear, Activation::relu, Activation::tanh, Activation::sigmoid,
                                      Activation::softmax, Activation::gelu}) {
    if (name(activation) == text) return activation;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is not an activation; choose linear, relu, tanh, sigmoid, softmax or gelu",
                          quoted_text(text, 100)));
}

}  // namespace holdfast
