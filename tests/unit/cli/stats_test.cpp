#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/special_floats.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using Stats = testing::CommandTest;

TEST_F(Stats, ShowWhatTheValuesLookLike) {
  write("/d/a.h5", {{"bad", {2}, {kNaN, kInfinity}}, {"good", {4}, {0, 1, 3, 4}}});

  EXPECT_EQ(run({"stats", "/d/a.h5"}), kDone);

  // The norm is the root of 26, the deviation that of 10 / 4.
  EXPECT_EQ(out(),
            "name  type  elements  min  max  mean      std     norm  zeros  NaN  Inf  min to max\n"
            "bad   f32          2    -    -     -        -        -      0    1    1\n"
            "good  f32          4    0    4     2  1.58114  5.09902      1    0    0  |█   █       █  █|\n");
}

TEST_F(Stats, ArePrintedAsJson) {
  write("/d/a.h5", {{"bad", {1}, {kNaN}}, {"good", {2, 2}, {0, 1, 3, 4}}});

  EXPECT_EQ(run({"stats", "/d/a.h5", "--json"}), kDone);

  const nlohmann::json arrays = nlohmann::json::parse(out()).at("arrays");
  EXPECT_EQ(arrays.at(0).at("name"), "bad");
  EXPECT_EQ(arrays.at(0).at("nan"), 1);
  EXPECT_TRUE(arrays.at(0).at("mean").is_null());
  EXPECT_EQ(arrays.at(1).at("type"), "f32");
  EXPECT_EQ(arrays.at(1).at("shape"), nlohmann::json({2, 2}));
  EXPECT_EQ(arrays.at(1).at("min"), 0);
  EXPECT_EQ(arrays.at(1).at("max"), 4);
  EXPECT_EQ(arrays.at(1).at("mean"), 2);
  EXPECT_EQ(arrays.at(1).at("zeros"), 1);
  EXPECT_EQ(arrays.at(1).at("histogram"), nlohmann::json({1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}));
}

// The array is larger than what is held in memory, so it is read in several passes.
TEST_F(Stats, ComputesALargeArrayInPieces) {
  std::vector<float> values(17'000'000, 0);
  values.front() = -1;
  values.back() = 3;
  write("/d/a.h5", {{"large", {values.size()}, values}, {"small", {2}, {1, 3}}});

  EXPECT_EQ(run({"stats", "/d/a.h5", "--json"}), kDone);

  const nlohmann::json arrays = nlohmann::json::parse(out()).at("arrays");
  EXPECT_EQ(arrays.at(0).at("elements"), 17'000'000);
  EXPECT_EQ(arrays.at(0).at("zeros"), 16'999'998);
  EXPECT_EQ(arrays.at(0).at("min"), -1);
  EXPECT_EQ(arrays.at(0).at("max"), 3);
  EXPECT_EQ(arrays.at(0).at("mean"), 2.0 / 17'000'000);
  EXPECT_EQ(arrays.at(0).at("histogram").at(4), 16'999'998);
  EXPECT_EQ(arrays.at(1).at("mean"), 2);
}

TEST_F(Stats, AreNotPrintedForADamagedFile) {
  write("/d/a.h5", {{"x", {3000}, std::vector<float>(3000, 1)}});
  damage("/d/a.h5");

  EXPECT_EQ(run({"stats", "/d/a.h5"}), kNotDone);

  EXPECT_EQ(out(), "");
  EXPECT_THAT(problems(), HasSubstr("/d/a.h5"));
}

}  // namespace
}  // namespace holdfast::cli
