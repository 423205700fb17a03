#pragma once

// Element types of arrays, in memory and in files. All are little-endian.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast {

enum class DType { f64, f32, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

std::size_t size_bytes(DType dtype);
// "f32", "boolean", ...
std::string_view name(DType dtype);
// Throws Error{invalid_argument} for a name that no type has.
DType dtype_from_name(std::string_view name);

}  // namespace holdfast
