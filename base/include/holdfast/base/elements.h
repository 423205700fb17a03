#pragma once

// Reads elements of any DType as numbers: for code that looks at values whose type is known only at
// run time. Each reader has a Value type, kBytes, and load(), which takes an address without alignment.
//
//   double sum = 0;
//   with_element(dtype, [&]<typename Element>(Element) {
//     for (std::size_t at = 0; at < bytes.size(); at += Element::kBytes) {
//       sum += static_cast<double>(Element::load(bytes.data() + at));
//     }
//   });
//
// with_element() chooses once, outside the loop, so the loop is as fast as one for a fixed type. Nothing
// here checks bounds: load() reads kBytes bytes, which the caller must have. It never rounds. A caller
// that converts further may round: a double has no place for all digits of an i64 above 2^53.
//
// Bytes are little-endian, as in savepoints. Bytes of a big-endian file are turned round by its reader before they get
// here. There are no writers, since those of bf16 and f16 would have to round.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "holdfast/base/dtype.h"

namespace holdfast {

// Elements that C++ has a type for:
//
//   const std::int32_t id = PlainElement<std::int32_t>::load(bytes.data() + 4 * index);
//
// Their bytes are those of a little-endian machine, as ours are.
template <typename T>
struct PlainElement {
  using Value = T;                                  // what load() returns
  static constexpr std::size_t kBytes = sizeof(T);  // of one element in a file or in memory
  // A copy, since bytes out of a file need not be aligned for a T.
  static Value load(const std::byte* from) {
    Value value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
};

// bfloat16: the upper 16 bits of a float (1 sign bit, 8 exponent bits with bias 127, 7 mantissa bits), so
// every value is exact in a float. 0x3F80 is 1, and 0x7F80 infinity.
struct Bf16Element {
  using Value = float;                      // what load() returns
  static constexpr std::size_t kBytes = 2;  // of one element in a file or in memory
  // Infinity and NaN stay what they are: both formats have the same exponents.
  static Value load(const std::byte* from) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(PlainElement<std::uint16_t>::load(from)) << 16);
  }
};

// IEEE 754 binary16: 1 sign bit, 5 exponent bits with bias 15, 10 mantissa bits. Every value is exact
// in a float. A NaN keeps its payload. With exponent e and mantissa m, a normal number is
// 2^(e - 15) * (1 + m / 1024), and a subnormal one, with e = 0, is 2^-24 * m. So 0x3C00 is 1, 0x7BFF is
// 65504, the largest number, and 0x0001 is 2^-24, the smallest above 0:
//
//   const float largest = F16Element::load(bytes.data());  // of the bytes FF 7B
struct F16Element {
  using Value = float;                      // what load() returns
  static constexpr std::size_t kBytes = 2;  // of one element in a file or in memory
  // Zeros keep their sign, and subnormal numbers their value.
  static Value load(const std::byte* from) {
    const std::uint32_t bits = PlainElement<std::uint16_t>::load(from);
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    const std::uint32_t mantissa = bits & 0x3FFU;
    // Zero and subnormal numbers: the mantissa counts in units of 2^-24, and -0 keeps its sign.
    if (exponent == 0) {
      const float size = static_cast<float>(mantissa) * 0x1p-24F;
      return sign == 0 ? size : -size;
    }
    // 0x1F marks infinity and NaN, as 0xFF does in a float. Other exponents change their bias.
    const std::uint32_t wide_exponent = exponent == 0x1F ? 0xFFU : exponent + 127 - 15;
    return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
  }
};

// Calls action(Element()) for the reader of `dtype` and returns its result. All calls of `action` must
// have one result type, and it is compiled once for each type: keep what does not depend on the type outside of
// it. A boolean is read as a std::uint8_t.
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
