#include "core/name_pattern.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(NamePattern, TakesWholeNamesAlone) {
  EXPECT_TRUE(matches_pattern("dense", "dense"));
  EXPECT_FALSE(matches_pattern("dense", "dense_1"));
  EXPECT_FALSE(matches_pattern("dense_1", "dense"));
  EXPECT_FALSE(matches_pattern("", "dense"));
}

TEST(NamePattern, TakesAnyCharactersForAStar) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("block1_*", "block1_"));
  EXPECT_TRUE(matches_pattern("*/bias", "encoder/dense/bias"));
  EXPECT_TRUE(matches_pattern("*ab*abc*", "xababcx"));
  EXPECT_FALSE(matches_pattern("block1_*", "block10_conv"));
  EXPECT_FALSE(matches_pattern("*/bias", "dense/bias_2"));
}

TEST(NamePattern, TakesOneCharacterForAQuestionMark) {
  EXPECT_TRUE(matches_pattern("block?_*", "block2_conv"));
  EXPECT_FALSE(matches_pattern("block?_*", "block12_conv"));
  EXPECT_FALSE(matches_pattern("dense?", "dense"));
}

}  // namespace
}  // namespace holdfast
