// A conversion that loses a value without a word would train on other data than the user has. So integers must fit, and
// floats become integers only where they are whole. Rounding of floats is what f32 means, and is allowed.

#include "data/files/array_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "holdfast/base/elements.h"
#include "holdfast/base/error.h"
#include "holdfast/core/row_layout.h"

namespace holdfast {
namespace {

// The upper half of a float, rounded to the nearest, ties to even.
struct Bf16Bits {
  std::uint16_t bits;
};

Bf16Bits bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Adding to a NaN could make an infinity of it.
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

// Each returns whether the value fits.
// Integers and halves always fit, if rounded. A double may be beyond the range of f32; one that was infinite or NaN
// before stays so.
template <typename From>
bool store(From value, float& to) {
  to = static_cast<float>(value);
  if constexpr (std::is_same_v<From, double>) return std::isfinite(to) || !std::isfinite(value);
  return true;
}

// A number as a float that keeps which side of a half it lies on: rounded to odd, where a second rounding to fewer bits
// gives the nearest (Boldo and Melquiond, "When double rounding is odd", 2005). Infinite beyond the range of f32.
float odd_float(double value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  const float below =
      std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0F) : nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(below) | 1U);
}

// An integer of more than 53 bits is not a double either.
template <std::integral From>
float odd_float(From value) {
  using Unsigned = std::make_unsigned_t<From>;
  const bool is_negative = std::is_signed_v<From> && value < From{0};
  std::uint64_t magnitude = is_negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                                        : static_cast<std::uint64_t>(static_cast<Unsigned>(value));
  const int lost = std::max(0, static_cast<int>(std::bit_width(magnitude)) - std::numeric_limits<double>::digits);
  const bool loses_bits = (magnitude & ((std::uint64_t{1} << lost) - 1)) != 0;
  magnitude = (magnitude >> lost) | (loses_bits ? 1U : 0U);
  const double rounded = std::ldexp(static_cast<double>(magnitude), lost);
  return odd_float(is_negative ? -rounded : rounded);
}

template <typename From>
bool store(From value, Bf16Bits& to) {
  float odd = 0;
  if constexpr (std::is_same_v<From, double> || (std::integral<From> && !std::same_as<From, bool>)) {
    odd = odd_float(value);
  } else {
    odd = static_cast<float>(value);
  }
  to = bf16_of(odd);
  const bool is_finite = std::isfinite(std::bit_cast<float>(std::uint32_t{to.bits} << 16));
  if constexpr (std::is_same_v<From, double>) return is_finite || !std::isfinite(value);
  return is_finite || !std::isfinite(odd);
}

template <typename From>
bool store(From value, bool& to) {
  // Only 0 and 1 are truths. Any other number in a column of truths shows that it is not one.
  to = value == From{1};
  return to || value == From{0};
}

// A cast of a float beyond the range of the integer is undefined, so the bounds
// come first. A NaN fails both comparisons.
template <typename From, std::integral To>
requires(!std::same_as<To, bool>) bool store(From value, To& to) {
  if constexpr (std::is_floating_point_v<From>) {
    // Both bounds are powers of two, and so are exact in any float.
    const From end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    const From begin = std::is_signed_v<To> ? -end : From{0};
    if (!(value >= begin && value < end) || value != std::trunc(value)) return false;
  } else {
    if (!std::in_range<To>(value)) return false;
  }
  to = static_cast<To>(value);
  return true;
}

// Calls the action with a value of the C++ type of `dtype`, whose value does not matter.
template <typename Action>
void with_target(DType dtype, const Action& action) {
  switch (dtype) {
    case DType::f32:
      return action(float{});
    case DType::bf16:
      return action(Bf16Bits{});
    case DType::i32:
      return action(std::int32_t{});
    case DType::i64:
      return action(std::int64_t{});
    case DType::u8:
      return action(std::uint8_t{});
    case DType::u16:
      return action(std::uint16_t{});
    case DType::boolean:
      return action(bool{});
    default:
      HOLDFAST_ASSERT(!is_sample_type(dtype));
  }
}

}  // namespace

DType converted_type(DType stored, std::optional<DType> asked, const std::string& label) {
  const DType type = asked.value_or(stored);
  if (is_sample_type(type)) return type;
  // A type that the user asked for is a wrong argument. One that only the file has can be read, after a conversion.
  if (asked) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} cannot become {}, which samples cannot have; ask for f32, bf16, i32, i64, u8, u16 or "
                            "boolean",
                            label, name(type)));
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("{} has elements of {}, which samples cannot have; convert them with the option .dtype = "
                          "DType::{}",
                          label, name(stored), stored == DType::f64 || stored == DType::f16 ? "f32" : "i64"));
}

void convert_elements(std::span<const std::byte> from, DType from_type, std::span<std::byte> to, DType to_type,
                      std::uint64_t first, const std::string& label) {
  if (from.empty()) return;
  // Bit for bit: also a NaN keeps its payload, and a boolean its byte.
  if (from_type == to_type) {
    HOLDFAST_ASSERT(from.size() == to.size());
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  with_element(from_type, [&](auto element) {
    using Element = decltype(element);
    with_target(to_type, [&](auto target) {
      const std::size_t count = from.size() / Element::kBytes;
      HOLDFAST_ASSERT(to.size() == count * sizeof target);
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = Element::load(from.data() + i * Element::kBytes);
        if (!store(value, target)) {
          throw Error(
              ErrorCode::invalid_file,
              fmt::format("element {} of {} is {}, which {} cannot hold; choose another type or correct the file",
                          first + i, label, value, name(to_type)));
        }
        std::memcpy(to.data() + i * sizeof target, &target, sizeof target);
      }
    });
  });
}

}  // namespace holdfast
