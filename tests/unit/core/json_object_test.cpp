#include "core/json_object.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

TEST(JsonObject, WritesItsMembersInTheOrderOfTheCalls) {
  const std::vector<std::int64_t> integers = {1, -2};
  const std::vector<float> numbers = {0.1F, 0, 1e-7F};

  const std::string text = JsonObject("mine")
                               .number("b", 0.001F)
                               .integer("a", 3)
                               .boolean("is", true)
                               .number_or_null("some", 1)
                               .number_or_null("none", {})
                               .integers("integers", integers)
                               .numbers("numbers", numbers)
                               .value("inner", R"({"kind":"x"})")
                               .text();

  EXPECT_EQ(text, R"({"kind":"mine","b":0.001,"a":3,"is":true,"some":1,"none":null,"integers":[1,-2],)"
                  R"("numbers":[0.1,0,1e-07],"inner":{"kind":"x"}})");
}

TEST(JsonObject, HasItsKindAlone) {
  EXPECT_EQ(JsonObject("none").text(), R"({"kind":"none"})");
}

TEST(JsonObject, WritesEmptyLists) {
  EXPECT_EQ(JsonObject("none").integers("a", {}).numbers("b", {}).text(), R"({"kind":"none","a":[],"b":[]})");
}

TEST(JsonObject, TakesMembersOfAnother) {
  const std::string members = JsonObject().integer("a", 1).boolean("b", false).members();

  EXPECT_EQ(members, R"("a":1,"b":false)");
  EXPECT_EQ(JsonObject("k").append(members).integer("c", 2).text(), R"({"kind":"k","a":1,"b":false,"c":2})");
  EXPECT_EQ(JsonObject().append(members).text(), R"({"a":1,"b":false})");
  EXPECT_EQ(JsonObject("k").append(JsonObject().members()).text(), R"({"kind":"k"})");
}

}  // namespace
}  // namespace holdfast
