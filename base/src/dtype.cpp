#include "holdfast/base/dtype.h"

#include <fmt/format.h>

#include <array>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

// In the order of the enumerators, since row() looks a type up by its number. The names are stored in files.
constexpr std::array<Row, 13> kRows = {{{DType::f64, "f64", 8},
                                        {DType::f32, "f32", 4},
                                        {DType::f16, "f16", 2},
                                        {DType::bf16, "bf16", 2},
                                        {DType::i8, "i8", 1},
                                        {DType::i16, "i16", 2},
                                        {DType::i32, "i32", 4},
                                        {DType::i64, "i64", 8},
                                        {DType::u8, "u8", 1},
                                        {DType::u16, "u16", 2},
                                        {DType::u32, "u32", 4},
                                        {DType::u64, "u64", 8},
                                        {DType::boolean, "boolean", 1}}};

const Row& row(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  HOLDFAST_ASSERT(index < kRows.size() && kRows[index].dtype == dtype);
  return kRows[index];
}

}  // namespace

std::size_t size_bytes(DType dtype) {
  return row(dtype).bytes;
}

std::string_view name(DType dtype) {
  return row(dtype).name;
}

DType dtype_from_name(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.name == name) return candidate.dtype;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no element type {}; use one such as f32, bf16 or i64", quoted_text(name, 100)));
}

}  // namespace holdfast
