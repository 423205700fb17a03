#pragma once

// Which last layers of a model and which options the cross-entropies accept.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/compute/activation.h"
#include "holdfast/nn/crossentropy_options.h"

namespace holdfast {

// Throws as Loss::check_last_activation() does. `fitting` is the activation that makes probabilities
// for this loss: "softmax".
void check_crossentropy(const std::string& loss, const CrossentropyOptions& options, std::optional<Activation> last,
                        std::string_view fitting);

// The same for a metric of probabilities, which could only report a false number.
void check_metric_of_probabilities(const std::string& metric, bool from_logits, std::optional<Activation> last,
                                   std::string_view fitting);

// Throws Error{invalid_argument} for ignore_class and positions_at_once, which only class numbers have.
void check_has_no_class_numbers(const std::string& loss, const CrossentropyOptions& options);

// Throws Error{invalid_argument} for an ignored class that floats do not hold exactly. `what` is a loss or a metric.
void check_ignored_class(const std::string& what, std::optional<std::int64_t> ignore_class);

// {"kind":KIND,"from_logits":...}, then smoothing, ignored class and positions at once if there are any.
std::string crossentropy_configuration(const std::string& kind, const CrossentropyOptions& options);

}  // namespace holdfast
