#pragma once

// Elements of arrays that lie in rows of 4-byte words, whatever their type. Words are read as floats that nobody
// computes with, so all bits stay.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/host_device.h"
#include "holdfast/base/dtype.h"

namespace holdfast::compute {

template <class T>
HOLDFAST_HOST_DEVICE inline T read_element(const float* array, std::int64_t index) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(array) + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

HOLDFAST_HOST_DEVICE inline float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// A 4-byte element of type `to` (f32 or i32) as the bits of a float.
HOLDFAST_HOST_DEVICE inline float integer_word(std::int32_t value, bool is_to_float) {
  return is_to_float ? static_cast<float>(value) : float_of_bits(static_cast<std::uint32_t>(value));
}

// Element `index` of an array of type `from`, as in RowConversion.
HOLDFAST_HOST_DEVICE inline float converted_element(DType from, bool is_to_float, const float* array,
                                                    std::int64_t index) {
  switch (from) {
    case DType::bf16:
      return float_of_bits(static_cast<std::uint32_t>(read_element<std::uint16_t>(array, index)) << 16);
    case DType::i32:
      return integer_word(read_element<std::int32_t>(array, index), is_to_float);
    case DType::i64:
      return integer_word(static_cast<std::int32_t>(read_element<std::int64_t>(array, index)), is_to_float);
    case DType::u16:
      return integer_word(read_element<std::uint16_t>(array, index), is_to_float);
    case DType::u8:
    case DType::boolean:
      return integer_word(read_element<std::uint8_t>(array, index), is_to_float);
    default:
      return array[index];
  }
}

}  // namespace holdfast::compute
