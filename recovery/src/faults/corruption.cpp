// Float and bit are drawn from the fault's seed. So a run that is repeated with the same faults gets the same wrong
// number. docs/decisions/testing.md
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "holdfast/base/draws.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {
namespace {

constexpr std::uint64_t kBitsOfFloat = 32;

float flipped(float value, std::uint64_t bit) {
  // As an integer, so that a flipped bit of the exponent may also give an infinity or a NaN, as a real error does.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << bit));
}

}  // namespace

std::string corrupt(const Corruption& corruption, std::span<const std::span<float>> blocks) {
  std::uint64_t count = 0;
  for (const std::span<float> block : blocks) count += block.size();
  // Plain SGD, for example, has no slots.
  if (count == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a fault cannot change a {}, because this model has none; choose another target",
                            to_string(corruption.target)));
  }
  Draws draws(corruption.seed);
  // Drawn from all floats together, so that one in a small block is struck no more often than others.
  const std::uint64_t chosen = draws.below(count);
  const std::uint64_t bit = draws.below(kBitsOfFloat);
  std::uint64_t index = chosen;
  for (const std::span<float> block : blocks) {
    if (index < block.size()) {
      block[index] = corruption.is_nan ? std::numeric_limits<float>::quiet_NaN() : flipped(block[index], bit);
      break;
    }
    index -= block.size();
  }
  return fmt::format("{} float {} of {}", corruption.is_nan ? "a NaN as" : fmt::format("bit {} of", bit), chosen,
                     count);
}

}  // namespace holdfast::recovery
