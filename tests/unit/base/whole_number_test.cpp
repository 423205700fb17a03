#include "holdfast/base/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace holdfast {
namespace {

TEST(WholeNumber, IsTheNumberInTheText) {
  EXPECT_EQ(whole_number<int>("-7"), -7);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
}

TEST(WholeNumber, IsNeitherCutNorWrapped) {
  for (const char* text : {"", " 7", "7 ", "+7", "7.0", "1e300", "0x10", "nan", "2147483648", "-2147483649"}) {
    EXPECT_EQ(whole_number<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(whole_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551616"), std::nullopt);
}

}  // namespace
}  // namespace holdfast
