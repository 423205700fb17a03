#include "holdfast/compute/precision.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast {

TEST(Precision, IsFoundByItsName) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    EXPECT_EQ(precision_from_name(name(precision)), precision);
  }
  EXPECT_EQ(name(Precision::bf16), "bf16");
  EXPECT_THROW(precision_from_name("fp16"), Error);
}

}  // namespace holdfast
