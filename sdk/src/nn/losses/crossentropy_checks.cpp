// Which last layers fit a loss or a metric. A model whose last layer does not fit trains, only badly, or a false number
// is reported: nothing later would show the reason, so it is refused when a Trainer is made.

#include "nn/losses/crossentropy_checks.h"

#include <fmt/format.h>

#include "core/json_object.h"
#include "holdfast/base/error.h"

namespace holdfast {

void check_crossentropy(const std::string& loss, const CrossentropyOptions& options, std::optional<Activation> last,
                        std::string_view fitting) {
  // An activation that is not known may fit.
  if (options.accept_any_activation || !last) return;
  // A model with the wrong last layer trains, but badly. The reason would be hard to find later, so it is an error.
  const bool gives_probabilities = *last == Activation::softmax || *last == Activation::sigmoid;
  if (gives_probabilities != options.from_logits) return;
  const std::string activation(name(*last));
  // A model may be trained so on purpose, so each sentence names the option for it.
  const std::string accept = "; to train so on purpose, set .accept_any_activation = true";
  if (options.from_logits) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} with from_logits takes scores and applies the {} itself, but the model's last layer ends "
                    "with a {}, so that it would be applied twice: leave from_logits out, or the activation (a "
                    "linear last layer with from_logits is the more exact of the two){}",
                    loss, fitting, activation, accept));
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} without from_logits takes probabilities, but the model's last layer has the activation {}, "
                  "whose values are not probabilities: set {{.from_logits = true}}{}, or end the model with {}{}",
                  loss, activation, *last == Activation::linear ? "" : " after a linear layer", fitting, accept));
}

void check_metric_of_probabilities(const std::string& metric, bool from_logits, std::optional<Activation> last,
                                   std::string_view fitting) {
  if (!last) return;
  const bool gives_probabilities = *last == Activation::softmax || *last == Activation::sigmoid;
  if (gives_probabilities != from_logits) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "metric {} {} from_logits takes {}, but the model's last layer has the activation {}: {}", metric,
          from_logits ? "with" : "without",
          from_logits ? fmt::format("scores, and applies the {} itself", fitting) : "probabilities", name(*last),
          from_logits
              ? std::string("leave .from_logits out, or set .accept_any_activation = true")
              : fmt::format("set .from_logits = true, end the model with {}, or set .accept_any_activation = true",
                            fitting)));
}

void check_has_no_class_numbers(const std::string& loss, const CrossentropyOptions& options) {
  if (options.positions_at_once != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given .positions_at_once = {}, but its targets are not class numbers; use "
                            "SparseCategoricalCrossentropy",
                            loss, options.positions_at_once));
  }
  if (!options.ignore_class) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given .ignore_class = {}, but its targets are not class numbers; use "
                          "SparseCategoricalCrossentropy, or weights of samples",
                          loss, *options.ignore_class));
}

void check_ignored_class(const std::string& what, std::optional<std::int64_t> ignore_class) {
  // Targets are compared as f32, in which larger numbers are not exact.
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  if (!ignore_class || (*ignore_class >= -kExact && *ignore_class <= kExact)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given .ignore_class = {}; it is a number from -2^24 to 2^24", what, *ignore_class));
}

std::string crossentropy_configuration(const std::string& kind, const CrossentropyOptions& options) {
  // Without smoothing the text is that of savepoints which know none. A check changes none of the numbers, so a run may
  // resume with another choice of it.
  const float smoothing = options.label_smoothing;
  JsonObject object(kind);
  object.boolean("from_logits", options.from_logits);
  if (smoothing != 0) object.number("label_smoothing", smoothing);
  if (options.ignore_class) object.integer("ignore_class", *options.ignore_class);
  if (options.positions_at_once != 0) object.integer("positions_at_once", options.positions_at_once);
  return object.text();
}

}  // namespace holdfast
