#include "core/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

TEST(JsonNumber, IsTheShortestDecimalOfAFloat) {
  EXPECT_EQ(json_number(0.001F), "0.001");
  EXPECT_EQ(json_number(1e-7F), "1e-07");
  EXPECT_EQ(json_number(-0.5F), "-0.5");
  EXPECT_EQ(json_number(0), "0");
}

TEST(JsonNumber, ReadsBackAsTheSameFloatInJsonAndByUs) {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  for (const float value :
       {0.1F, 1.0F / 3.0F, std::nextafter(0.9F, 1.0F), 3.4028235e38F, kLeast, -1e-7F, 16777217.0F}) {
    const std::string text = json_number(value);

    EXPECT_EQ(float_from_text(text), value) << text;
    EXPECT_EQ(nlohmann::json::parse(text).get<float>(), value) << text;
  }
}

TEST(FloatFromText, RefusesWhatIsNotAFiniteNumber) {
  for (const std::string text : {"", " 1", "1 ", "1.5x", "nan", "inf", "-infinity", "1e999", "0x1p3", "+1"}) {
    EXPECT_THROW(float_from_text(text), Error) << "\"" << text << "\"";
  }
}

TEST(JsonString, EscapesWhatJsonCannotHold) {
  EXPECT_EQ(json_string("plain"), "\"plain\"");
  EXPECT_EQ(json_string("a\"b\\c\n"), R"("a\"b\\c\n")");
  EXPECT_EQ(json_string("\xff"), "\"\xEF\xBF\xBD\"");
}

TEST(DeepJson, IsFoundBeforeItIsParsed) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + "{\"a\": 1}" + std::string(levels, ']');
  };

  EXPECT_FALSE(is_deep_json("{}"));
  EXPECT_FALSE(is_deep_json(nested(999)));
  EXPECT_TRUE(is_deep_json(nested(1000)));
  EXPECT_TRUE(is_deep_json(std::string(1'000'000, '[')));
}

TEST(DeepJson, CountsNeitherNeighboursNorBracketsInStrings) {
  std::string neighbours = "[";
  for (int i = 0; i < 2000; ++i) neighbours += "[],";
  const std::string brackets(2000, '[');

  EXPECT_FALSE(is_deep_json(neighbours + "[]]"));
  EXPECT_FALSE(is_deep_json("[\"" + brackets + "\\\"" + brackets + "\"]"));
  EXPECT_TRUE(is_deep_json("[\"a\\\\\", " + brackets));
}

}  // namespace
}  // namespace holdfast
