// Changes of tones, each channel by itself. Keras computes them from 0 to 255, and so do these: bits and bins are those
// of bytes.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "data/pictures/pixel_change.h"
#include "holdfast/base/error.h"
#include "holdfast/data/picture_colors.h"

namespace holdfast {
namespace {

constexpr float kWhiteByte = 255;

// Cut off and not rounded: bits and bins are those of a cast to a byte. A NaN becomes 0, since it is not greater
// than 0; its cast would be undefined.
std::uint8_t byte_below(float value) {
  return value > 0 ? static_cast<std::uint8_t>(std::min(value, kWhiteByte)) : std::uint8_t{0};
}

void posterize(const Pixels& pixels, int bits) {
  // The scale brings a pixel to 0 to 255, and the division below brings it back.
  const float scale = kWhiteByte / pixels.most;
  for (float& value : pixels.values) {
    // The lower bits become 0, so white becomes the largest number that is left and not 255.
    const int dropped = 8 - bits;
    value = static_cast<float>(byte_below(value * scale) >> dropped << dropped) / scale;
  }
}

void stretch_channel(const Pixels& pixels, std::size_t channel) {
  const std::size_t channels = pixels.channels();
  float low = pixels.values[channel];
  float high = low;
  for (std::size_t i = channel; i < pixels.values.size(); i += channels) {
    low = std::min(low, pixels.values[i]);
    high = std::max(high, pixels.values[i]);
  }
  // A channel of one value has nothing to stretch, and the scale would be infinite.
  if (!(high > low)) return;
  const float scale = pixels.most / (high - low);
  for (std::size_t i = channel; i < pixels.values.size(); i += channels) {
    pixels.values[i] = std::clamp(pixels.values[i] * scale - low * scale, 0.0F, pixels.most);
  }
}

// The new value of each byte, from how many pixels are at most as bright.
void equalize_channel(const Pixels& pixels, std::size_t channel) {
  const std::size_t channels = pixels.channels();
  const float scale = kWhiteByte / pixels.most;
  std::array<std::int64_t, 256> counts{};
  for (std::size_t i = channel; i < pixels.values.size(); i += channels) ++counts[byte_below(pixels.values[i] * scale)];
  const auto first = std::ranges::find_if(counts, [](std::int64_t count) { return count > 0; });
  const auto pixels_of_channel = static_cast<std::int64_t>(pixels.values.size() / channels);
  // Pixels of the darkest bin become 0, so they are taken off the count on both sides of the division.
  const std::int64_t darkest = first == counts.end() ? 0 : *first;
  if (darkest == pixels_of_channel) return;
  std::array<float, 256> table{};
  std::int64_t below = 0;
  // One table of 256 numbers for all pixels of the channel. Counts are integers, so no order of pixels changes them.
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    below += counts[byte];
    const double level =
        static_cast<double>((below - darkest) * 255) / static_cast<double>(pixels_of_channel - darkest);
    // Half to even, as in Keras.
    table[byte] = static_cast<float>(std::clamp(std::nearbyint(level), 0.0, 255.0));
  }
  for (std::size_t i = channel; i < pixels.values.size(); i += channels) {
    pixels.values[i] = table[byte_below(pixels.values[i] * scale)] / scale;
  }
}

}  // namespace

PictureChange random_invert(float probability, float max_value) {
  check_number("random_invert", "probability", probability, 0, 1);
  return change_of_pixels({.name = "random_invert",
                           .options = fmt::format("{}", probability),
                           .max_value = max_value,
                           .apply = [probability](const Pixels& pixels, Random& random) {
                             // The draw comes first, so a sample that stays as it is has drawn as often as any other.
                             if (random.uniform() >= probability) return;
                             for (float& value : pixels.values) value = pixels.most - value;
                           }});
}

PictureChange random_posterization(int least_bits, int most_bits, float max_value) {
  if (least_bits < 1 || most_bits > 8 || least_bits > most_bits) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("random_posterization(): bits are 1 to 8, the smaller number first, not {} to {}",
                            least_bits, most_bits));
  }
  return change_of_pixels({.name = "random_posterization",
                           .options = fmt::format("{} to {}", least_bits, most_bits),
                           .max_value = max_value,
                           .apply = [least_bits, most_bits](const Pixels& pixels, Random& random) {
                             const auto choices = static_cast<std::uint64_t>(most_bits - least_bits + 1);
                             posterize(pixels, least_bits + static_cast<int>(random.below(choices)));
                           }});
}

PictureChange solarization(const SolarizationOptions& options) {
  check_range("solarization", "addition", options.addition, 0, 1);
  check_range("solarization", "threshold", options.threshold, 0, 1);
  return change_of_pixels(
      {.name = "solarization",
       .options = fmt::format("addition {}, threshold {}", text_of(options.addition), text_of(options.threshold)),
       .max_value = options.max_value,
       .apply = [options](const Pixels& pixels, Random& random) {
         // Both are drawn for each sample, in this order: the bits of present runs depend on it.
         const float addition = pixels.most * drawn_from(options.addition, random);
         const float threshold = pixels.most * drawn_from(options.threshold, random);
         for (float& value : pixels.values) {
           // Cut to white before the comparison, so what would be brighter than white becomes black.
           const float added = std::clamp(value + addition, 0.0F, pixels.most);
           value = added < threshold ? added : pixels.most - added;
         }
       }});
}

PictureChange auto_contrast(float max_value) {
  return change_of_pixels({.name = "auto_contrast",
                           .options = "of each channel",
                           .draws = false,
                           .max_value = max_value,
                           .apply = [](const Pixels& pixels, Random&) {
                             for (std::size_t i = 0; i < pixels.channels(); ++i) stretch_channel(pixels, i);
                           }});
}

PictureChange equalization(float max_value) {
  return change_of_pixels({.name = "equalization",
                           .options = "of each channel",
                           .draws = false,
                           .max_value = max_value,
                           .apply = [](const Pixels& pixels, Random&) {
                             for (std::size_t i = 0; i < pixels.channels(); ++i) equalize_channel(pixels, i);
                           }});
}

}  // namespace holdfast
