#include "train/state/json_differences.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

std::vector<std::string> texts_of_differences(const char* first, const char* second) {
  std::vector<std::string> found;
  for (const JsonDifference& difference :
       differences_of("x", nlohmann::json::parse(first), nlohmann::json::parse(second))) {
    found.push_back(difference.path + ": " + difference.first + " -> " + difference.second);
  }
  return found;
}

TEST(JsonDifferences, NamesEachLeafThatDiffersWithBothValues) {
  EXPECT_EQ(texts_of_differences(R"({"a":{"b":1,"c":[1,2]},"only_first":true})", R"({"a":{"b":2,"c":[1,2,3]}})"),
            (std::vector<std::string>{"x/a/b: 1 -> 2", "x/a/c/2: not set -> 3", "x/only_first: true -> not set"}));
}

// All three were taken for null, so a resume accepted one for another.
TEST(JsonDifferences, TellEmptyObjectsEmptyListsAndNullApart) {
  EXPECT_EQ(
      texts_of_differences(R"({"a":null,"b":{},"c":[],"d":{},"e":[]})", R"({"a":{},"b":[],"c":null,"d":{},"e":[]})"),
      (std::vector<std::string>{"x/a: null -> {}", "x/b: {} -> []", "x/c: [] -> null"}));
  EXPECT_EQ(texts_of_differences(R"([[],{"a/b":[]}])", R"([{},{"a/b":{}}])"),
            (std::vector<std::string>{"x/0: [] -> {}", "x/1/a~1b: [] -> {}"}));
  EXPECT_EQ(texts_of_differences("{}", R"({"a":1})"),
            (std::vector<std::string>{"x: {} -> not set", "x/a: not set -> 1"}));
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
