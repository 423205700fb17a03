#include "hosts/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string complaint_about_list(const std::string& list) {
  return complaint_about([&] { nodes_of(list); });
}

TEST(NodeList, NamesEachNodeInOrder) {
  EXPECT_THAT(nodes_of("login"), ElementsAre("login"));
  EXPECT_THAT(nodes_of("h[1-3]"), ElementsAre("h1", "h2", "h3"));
  EXPECT_THAT(nodes_of("h[1-2,5],gpu-a.example,x_[7]"), ElementsAre("h1", "h2", "h5", "gpu-a.example", "x_7"));
}

TEST(NodeList, KeepsZerosInFrontOfANumber) {
  EXPECT_THAT(nodes_of("h[08-11]"), ElementsAre("h08", "h09", "h10", "h11"));
  EXPECT_THAT(nodes_of("h[8-11,007]"), ElementsAre("h8", "h9", "h10", "h11", "h007"));
}

TEST(NodeList, CombinesSeveralBracketsOfAName) {
  EXPECT_THAT(nodes_of("r[1-2]n[3-4]-ib"), ElementsAre("r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"));
}

TEST(NodeList, RefusesTextThatIsNotAListOfNodes) {
  for (const char* text : {"", ",", "h1,", "h1,,h2", "h[", "h[]", "h[1", "h[1-]", "h[-1]", "h[3-1]", "h[1,]", "h[a]",
                           "h]", "h 1", "h[[1]]", "h\n", "h[9999999999]", "h/1"}) {
    EXPECT_THAT(complaint_about_list(text), HasSubstr("is not a list of nodes")) << text;
  }
}

TEST(NodeList, RefusesMoreNodesThanARunCanHaveBeforeItMakesThem) {
  EXPECT_EQ(nodes_of("h[1-512]").size(), kMostHosts);
  for (const char* text : {"h[1-513]", "h[1-999999999]", "a[1-500]b[1-500]c[1-500]", "h[1-300],g[1-300]"}) {
    EXPECT_THAT(complaint_about_list(text), HasSubstr("more than 512 names")) << text;
  }
}

TEST(NodeList, SaysWhereTheMistakeIs) {
  EXPECT_EQ(complaint_about_list("h[1-3"), "\"h[1-3\" is not a list of nodes: a bracket is not closed, at character 6");
}

}  // namespace
}  // namespace holdfast::recovery
