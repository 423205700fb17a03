#pragma once

// Elements of any type as numbers.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "holdfast/base/dtype.h"

namespace holdfast {

// Little-endian elements as numbers of type T.
template <typename T>
struct PlainElement {
  using Value = T;
  static constexpr std::size_t kBytes = sizeof(T);
  static Value load(const std::byte* from) {
    Value value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
};

struct Bf16Element {
  using Value = float;
  static constexpr std::size_t kBytes = 2;
  static Value load(const std::byte* from) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(PlainElement<std::uint16_t>::load(from)) << 16);
  }
};

// IEEE 754's binary16: exact in a float.
struct F16Element {
  using Value = float;
  static constexpr std::size_t kBytes = 2;
  static Value load(const std::byte* from) {
    const std::uint32_t bits = PlainElement<std::uint16_t>::load(from);
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    const std::uint32_t mantissa = bits & 0x3FFU;
    if (exponent == 0) {
      const float size = static_cast<float>(mantissa) * 0x1p-24F;
      return sign == 0 ? size : -size;
    }
    const std::uint32_t wide_exponent = exponent == 0x1F ? 0xFFU : exponent + 127 - 15;
    return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
  }
};

// Returns action(Element) for the Element above that reads `dtype`.
template <typename Action>
auto with_element(DType dtype, const Action& action) {
  switch (dtype) {
    case DType::f64:
      return action(PlainElement<double>());
    case DType::f32:
      return action(PlainElement<float>());
    case DType::f16:
      return action(F16Element());
    case DType::bf16:
      return action(Bf16Element());
    case DType::i8:
      return action(PlainElement<std::int8_t>());
    case DType::i16:
      return action(PlainElement<std::int16_t>());
    case DType::i32:
      return action(PlainElement<std::int32_t>());
    case DType::i64:
      return action(PlainElement<std::int64_t>());
    case DType::u16:
      return action(PlainElement<std::uint16_t>());
    case DType::u32:
      return action(PlainElement<std::uint32_t>());
    case DType::u64:
      return action(PlainElement<std::uint64_t>());
    case DType::u8:
    case DType::boolean:
      break;
  }
  return action(PlainElement<std::uint8_t>());
}

}  // namespace holdfast
