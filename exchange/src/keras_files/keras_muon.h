#pragma once

// Which arrays Keras's Muon leaves to Adam. It keeps a velocity for those alone.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// With the options of a savepoint, which names arrays by patterns ("adam_arrays"). `array` is "dense/kernel".
bool is_for_adam(const Json& options, std::string_view array, std::span<const std::uint64_t> shape);

// With the options of Keras, which has regular expressions ("exclude_layers"). Empty where one of them is neither plain
// text nor one that keras_expression() gives: then nothing is said, since expressions of strangers are not run.
std::optional<bool> is_for_adam_in_keras(const Json& options, std::string_view array,
                                         std::span<const std::uint64_t> shape);

// The regular expression that finds the arrays of a pattern in Keras. Empty for a pattern with * or ?.
std::optional<std::string> keras_expression(std::string_view pattern);

}  // namespace holdfast::format
