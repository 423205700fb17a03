#include "metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> differences(const std::string& a, const std::string& b) {
  return metadata_differences(parse_metadata(a), parse_metadata(b));
}

TEST(Metadata, DiffersByKey) {
  EXPECT_THAT(
      differences(R"({"a": 1, "b": [1, 2, 5], "c": {"d": 1, "e": 2}})", R"({"b": [1, 3], "c": {"e": 3}, "f": 0})"),
      ElementsAre("only in A: a", "b: [1,2,5] in A, [1,3] in B", "only in A: c/d", "c/e: 2 in A, 3 in B",
                  "only in B: f"));
}

TEST(Metadata, DiffersByElementInListsOfOneLength) {
  EXPECT_THAT(differences(R"({"a": [1, {"b": 2, "c": 3}]})", R"({"a": [1, {"c": 4, "b": 2}]})"),
              ElementsAre("a/1/c: 3 in A, 4 in B"));
}

TEST(Metadata, IsEqualInAnyOrderOfKeys) {
  EXPECT_THAT(differences(R"({"a": [{"c": 2, "d": 3}]})", R"({"a": [{"d": 3, "c": 2}]})"), IsEmpty());
  EXPECT_THAT(differences(R"({"a": 1, "b": {"c": 2, "d": 3}})", R"({"b": {"d": 3, "c": 2}, "a": 1})"), IsEmpty());
}

TEST(Metadata, DiffersAsAWholeWhenItIsNotAnObject) {
  EXPECT_THAT(differences("[1]", "{}"), ElementsAre("all of it: [1] in A, {} in B"));
}

TEST(Metadata, ShowsTheBeginningOfLongValues) {
  const std::vector<std::string> lines = differences(R"({"a": ")" + std::string(1000, 'x') + R"("})", R"({"a": 1})");

  ASSERT_EQ(lines.size(), 1U);
  EXPECT_LT(lines[0].size(), 100U);
}

TEST(Metadata, IsParsedAtAnyDepth) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');

  EXPECT_FALSE(parse_metadata(deep).is_discarded());
  EXPECT_THAT(differences(deep, deep), IsEmpty());
  EXPECT_TRUE(parse_metadata("no json").is_null());
}

}  // namespace
}  // namespace holdfast::cli
