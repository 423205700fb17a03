#include "holdfast/train/reduction.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast {

TEST(Reduction, IsFoundByItsName) {
  for (const Reduction reduction : {Reduction::shard_order, Reduction::fastest}) {
    EXPECT_EQ(reduction_from_name(name(reduction)), reduction);
  }
  EXPECT_EQ(name(Reduction::fastest), "fastest");
  EXPECT_THROW(reduction_from_name("slowest"), Error);
}

}  // namespace holdfast
