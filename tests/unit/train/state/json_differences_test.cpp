#include "train/state/json_differences.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

TEST(JsonDifferences, NamesEachLeafThatDiffersWithBothValues) {
  const auto first = nlohmann::json::parse(R"({"a":{"b":1,"c":[1,2]},"only_first":true})");
  const auto second = nlohmann::json::parse(R"({"a":{"b":2,"c":[1,2,3]}})");

  std::vector<std::string> found;
  for (const JsonDifference& difference : differences_of("x", first, second)) {
    found.push_back(difference.path + ": " + difference.first + " -> " + difference.second);
  }

  EXPECT_EQ(found,
            (std::vector<std::string>{"x/a/b: 1 -> 2", "x/a/c/2: not set -> 3", "x/only_first: true -> not set"}));
}

TEST(JsonDifferences, AreThoseOfWholeValuesWhereTheKindDiffers) {
  const std::vector<JsonDifference> found = differences_of("x", nlohmann::json::parse("[1]"), nlohmann::json("text"));

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "x");
  EXPECT_EQ(found[0].first, "[1]");
  EXPECT_EQ(found[0].second, "\"text\"");
  EXPECT_TRUE(differences_of("x", nlohmann::json(1), nlohmann::json(1)).empty());
}

}  // namespace
}  // namespace holdfast
