#include "drawn_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "holdfast/core/random.h"

namespace {

constexpr std::int64_t kSide = 28;
constexpr float kFontWidth = 5;
constexpr float kFontHeight = 7;

// Seven rows from the top, with five dots each.
constexpr std::array<std::string_view, 10> kFont = {
    ".###.#...##..###.#.###..##...#.###.", "..#...##....#....#....#....#...###.", ".###.#...#....#...#...#...#...#####",
    ".###.#...#....#..##.....##...#.###.", "...#...##..#.#.#..#.#####...#....#.", "######....####.....#....##...#.###.",
    "..##..#...#....####.#...##...#.###.", "#####....#...#...#...#....#....#...", ".###.#...##...#.###.#...##...#.###.",
    ".###.#...##...#.####....#...#..##.."};

// The size, position and slant of a digit in the image.
struct Pose {
  float scale_x, scale_y, shift_x, shift_y, slant;
};

float between(holdfast::Random& random, float low, float high) {
  return low + (high - low) * random.uniform();
}

Pose draw_pose(holdfast::Random& random) {
  return {between(random, 2.4F, 3.6F), between(random, 2.4F, 3.2F), between(random, -3, 3), between(random, -3, 3),
          between(random, -0.25F, 0.25F)};
}

// The strength of the ink at a point of the font's grid, interpolated linearly between dots.
float ink(std::string_view font, float x, float y) {
  const auto dot = [&](float column, float row) {
    if (column < 0 || row < 0 || column >= kFontWidth || row >= kFontHeight) return 0.0F;
    return font[static_cast<std::size_t>(row * kFontWidth + column)] == '#' ? 1.0F : 0.0F;
  };
  const float left = std::floor(x);
  const float top = std::floor(y);
  const float right_share = x - left;
  const float lower_share = y - top;
  return (dot(left, top) * (1 - right_share) + dot(left + 1, top) * right_share) * (1 - lower_share) +
         (dot(left, top + 1) * (1 - right_share) + dot(left + 1, top + 1) * right_share) * lower_share;
}

void draw(std::int64_t digit, holdfast::Random& random, std::span<float> pixels) {
  const Pose pose = draw_pose(random);
  const float strength = between(random, 0.7F, 1.3F);
  for (std::int64_t row = 0; row < kSide; ++row) {
    for (std::int64_t column = 0; column < kSide; ++column) {
      const float y = (static_cast<float>(row) - 13.5F - pose.shift_y) / pose.scale_y;
      const float x = (static_cast<float>(column) - 13.5F - pose.shift_x) / pose.scale_x + pose.slant * y;
      const float value = strength * ink(kFont[static_cast<std::size_t>(digit)], x + 2, y + 3) + 0.1F * random.normal();
      pixels[static_cast<std::size_t>(row * kSide + column)] = std::clamp(value, 0.0F, 1.0F);
    }
  }
}

}  // namespace

holdfast::Dataset drawn_digits(std::int64_t count, std::uint64_t seed) {
  holdfast::Tensor images(holdfast::Shape{count, kSide, kSide, 1});
  holdfast::Tensor labels(holdfast::Shape{count});
  for (std::int64_t i = 0; i < count; ++i) {
    holdfast::Random random(seed, holdfast::Purpose::synthetic_data, 0, static_cast<std::uint64_t>(i));
    const auto digit = static_cast<std::int64_t>(random.below(10));
    labels.values()[static_cast<std::size_t>(i)] = static_cast<float>(digit);
    draw(digit, random, images.sample(i));
  }
  return holdfast::from_tensors(std::move(images), std::move(labels));
}
