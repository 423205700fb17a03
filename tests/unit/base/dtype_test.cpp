#include "holdfast/base/dtype.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

TEST(DType, HasItsSizeInBytes) {
  EXPECT_EQ(size_bytes(DType::f64), 8U);
  EXPECT_EQ(size_bytes(DType::f32), 4U);
  EXPECT_EQ(size_bytes(DType::f16), 2U);
  EXPECT_EQ(size_bytes(DType::bf16), 2U);
  EXPECT_EQ(size_bytes(DType::i8), 1U);
  EXPECT_EQ(size_bytes(DType::u64), 8U);
  EXPECT_EQ(size_bytes(DType::boolean), 1U);
}

TEST(DType, IsFoundAgainByItsName) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);

    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << name(dtype);
  }
}

TEST(DType, IsNotFoundByAnyOtherName) {
  for (const char* wrong : {"", "F32", "f32 ", "float", "bool"}) {
    try {
      dtype_from_name(wrong);
      ADD_FAILURE() << "\"" << wrong << "\" was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace holdfast
