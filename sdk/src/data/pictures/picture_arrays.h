#pragma once

// What all changes of pictures share: samples with one input of f32 or u8 [height, width, channels].

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "holdfast/core/row_layout.h"

namespace holdfast {

// Throws Error{invalid_argument} that names the change for an input that is not a picture.
void check_picture(std::string_view change, const ArraySpec& input);

// The pixels of a row, u8 as 0 to 255.
std::vector<float> floats_of(const ArrayRow& picture);
// The reverse; to u8, each is rounded to the nearest of 0 to 255.
void write_floats(std::span<const float> pixels, const ArrayRow& picture);

// (pixel - mean) * factor + mean, with the mean of the channel. Channels are the last axis.
void change_contrast(std::span<float> pixels, std::size_t channels, float factor);

}  // namespace holdfast
