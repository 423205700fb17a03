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

std::vector<std::string> layers_of(const std::string& graph) {
  std::vector<std::string> lines;
  for (const LayerRow& row : model_layers(parse_metadata(R"({"graph": )" + graph + "}"))) {
    lines.push_back(row.name + " " + row.kind + " <- " + row.inputs);
  }
  return lines;
}

TEST(Metadata, HasTheLayersOfAChain) {
  EXPECT_THAT(layers_of(R"({"layers": [{"name": "a", "kind": "Dense"}, {"name": "b", "kind": "Dropout"}]})"),
              ElementsAre("a Dense <- input", "b Dropout <- a"));
}

TEST(Metadata, HasTheLayersOfAGraphWithTheirInputs) {
  EXPECT_THAT(layers_of(R"({"inputs": [{"name": "x"}, {"name": "y"}],
                            "layers": [{"name": "a", "kind": "Dense"}, {"name": "b", "kind": "Add"}],
                            "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 0, "inputs": [[-1, 1]]},
                                      {"layer": 1, "inputs": [[0, 0], [1, 0]]}]})"),
              ElementsAre("a Dense <- x; y", "b Add <- a, a"));
}

TEST(Metadata, ShowsWhatItCanOfABrokenGraph) {
  EXPECT_THAT(layers_of(R"({"layers": 3})"), IsEmpty());
  EXPECT_THAT(layers_of(R"({"layers": [3, {"name": 4}], "calls": 5})"), ElementsAre("  <- ", "  <- "));
  EXPECT_THAT(layers_of(R"({"layers": [{"name": "a", "kind": "b"}],
                            "calls": [{"layer": 0, "inputs": [[7, 0], [-1, 0], 3, [0, 0], [18446744073709551615, 0]]},
                                      {"layer": 1}, {"layer": -1}, {"layer": "x"}, 8]})"),
              ElementsAre("a b <- ?, ?, ?, a, ?"));
}

TEST(Metadata, IsParsedAtAnyDepth) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');

  EXPECT_FALSE(parse_metadata(deep).is_discarded());
  EXPECT_THAT(differences(deep, deep), IsEmpty());
  EXPECT_TRUE(parse_metadata("no json").is_null());
}

}  // namespace
}  // namespace holdfast::cli
