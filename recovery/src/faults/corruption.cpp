#include <bit>
#include <limits>

#include "holdfast/base/draws.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {
namespace {

constexpr std::uint64_t kBitsOfFloat = 32;

float flipped(float value, std::uint64_t bit) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << bit));
}

}  // namespace

std::string corrupt(const Corruption& corruption, std::span<const std::span<float>> blocks) {
  std::uint64_t count = 0;
  for (const std::span<float> block : blocks) count += block.size();
  if (count == 0) {
    throw Error(ErrorCode::invalid_argument, "a fault was to make a " + std::string(to_string(corruption.target)) +
                                                 " wrong, but this model has none; choose another target");
  }
  Draws draws(corruption.seed);
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
  return (corruption.is_nan ? "a NaN as" : "bit " + std::to_string(bit) + " of") + " float " + std::to_string(chosen) +
         " of " + std::to_string(count);
}

}  // namespace holdfast::recovery
