#include "keras_files/keras_json.h"

#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using testing::error_of;

TEST(KerasJson, RefusesNestingThatRecursionWouldNotSurvive) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');

  const std::string error = error_of([&] { parse_keras_json(deep, "the text"); });

  EXPECT_EQ(error.find("invalid_file: the text is nested deeper than"), 0U) << error;
}

TEST(KerasJson, IgnoresBracketsInsideStrings) {
  const std::string text = R"({"name": ")" + std::string(5000, '[') + R"(\"[[" })";

  EXPECT_EQ(text_member(parse_keras_json(text, "the text"), "name").size(), 5003U);
}

TEST(KerasJson, RefusesTextThatIsNotJson) {
  for (const char* text : {"", "{", "{\"a\": }", "nothing", "{\"a\": \"\xFF\"}", "{\"a\": 1} x"}) {
    EXPECT_EQ(error_of([&] { parse_keras_json(text, "the text"); }).find("invalid_file: the text is not JSON"), 0U)
        << text;
  }
}

TEST(KerasJson, ReadsNanAndInfinityAsNull) {
  const Json json = parse_keras_json(R"({"a": NaN, "b": [Infinity, -Infinity, -1], "c": "NaN -Infinity"})", "the text");

  EXPECT_TRUE(json.at("a").is_null());
  EXPECT_EQ(json.at("b").dump(), "[null,null,-1]");
  EXPECT_EQ(json.at("c"), "NaN -Infinity");
}

TEST(KerasJson, ReturnsDefaultsForMembersOfAnotherType) {
  const Json json = {{"text", 3}, {"flag", "yes"}};

  EXPECT_EQ(text_member(json, "text"), "");
  EXPECT_TRUE(flag_member(json, "flag", true));
  EXPECT_TRUE(member(json, "other").is_null());
  EXPECT_TRUE(member(Json::array({1}), "other").is_null());
}

TEST(KerasJson, TakesNoLargeIntegerForANegativeOne) {
  EXPECT_EQ(integer_value(-3), -3);
  EXPECT_EQ(integer_value(std::int64_t{1} << 62), std::int64_t{1} << 62);
  EXPECT_EQ(integer_value(18446744073709551615U), std::nullopt);
  EXPECT_EQ(integer_value(1.0), std::nullopt);
  EXPECT_EQ(integer_value("1"), std::nullopt);
}

}  // namespace
}  // namespace holdfast::format
