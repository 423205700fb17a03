#pragma once

// Random values for layers that act in training only. The draws are those of dropout: functions of seed, step, sample
// and the call of the layer.

#include <string_view>

#include "holdfast/nn/layer_builder.h"

namespace holdfast {

// Throws Error{invalid_argument} naming the layer class unless 0 <= rate < 1.
void check_rate(std::string_view kind, float rate);

// For each element of `like`, which gives the shape alone: 0 with probability `rate`, else 1 / (1 - rate). A call of a
// layer with several masks numbers them, from kFirstFurtherMask on but for the first.
Value dropout_mask(const LayerBuilder& builder, const Value& like, float rate, std::uint64_t number = 0);
// Below it are the draws of normal_noise().
inline constexpr std::uint64_t kFirstFurtherMask = 24;

// For each element of `like`: a draw of the standard normal distribution.
Value normal_noise(const LayerBuilder& builder, const Value& like);

}  // namespace holdfast
