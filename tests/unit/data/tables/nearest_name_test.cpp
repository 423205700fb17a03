#include "data/tables/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

const std::vector<std::string> kNames = {"price", "rooms", "year built", "Area"};

TEST(NearestName, FindsANameThatWasMisspelt) {
  EXPECT_EQ(nearest_name("prize", kNames), "price");
  EXPECT_EQ(nearest_name("room", kNames), "rooms");
  EXPECT_EQ(nearest_name("yearbuilt", kNames), "year built");
}

TEST(NearestName, CountsCaseLessThanALetter) {
  EXPECT_EQ(nearest_name("area", kNames), "Area");
  EXPECT_EQ(nearest_name("PRICE", kNames), "price");
}

TEST(NearestName, IsTheFirstAmongEquals) {
  EXPECT_EQ(nearest_name("ab", std::vector<std::string>{"xb", "ax"}), "xb");
  EXPECT_EQ(nearest_name("ab", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace holdfast
