#pragma once

// The element types of arrays, in memory and in files. All are little-endian. The names are part of
// the file formats and never change.
//
//   dtype_from_name("bf16") == DType::bf16;  size_bytes(DType::bf16) == 2

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast {

// bf16 is the upper half of an f32; boolean is one byte, 0 or 1.
enum class DType { f64, f32, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

// The bytes of one element: 1, 2, 4 or 8.
std::size_t size_bytes(DType dtype);
// The enumerator's name: "f32", "boolean".
std::string_view name(DType dtype);
// The type of that name. Throws Error{invalid_argument} for a name that no type has.
DType dtype_from_name(std::string_view name);

}  // namespace holdfast
