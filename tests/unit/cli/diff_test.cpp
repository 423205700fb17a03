// `holdfast diff` on files in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/format/exchange/npz.h"
#include "support/special_floats.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using Diff = testing::CommandTest;

TEST_F(Diff, FindsNoDifferenceBetweenTheSameArraysInFilesOfTwoKinds) {
  const std::vector<float> values = {1, kNaN};
  write("/d/a.h5", {{"x", {2}, values}}, R"({"step": 1})");
  format::write_npz(files_, "/d/b.npz", R"({"step":1})",
                    std::vector<format::ArrayView>{{"x", DType::f32, {2}, std::as_bytes(std::span(values))}});

  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.npz"}), kDone);

  EXPECT_THAT(out(), HasSubstr("equal: 1 array, metadata equal\n"));
}

TEST_F(Diff, ShowsWhatDiffers) {
  write("/d/a.h5", {{"gone", {}, {1}}, {"shape", {2}, {1, 2}}, {"same", {1}, {5}}, {"x", {3}, {1, 2, kNaN}}},
        R"({"step": 1, "seed": 3})");
  write("/d/b.h5", {{"more", {1}, {1}}, {"same", {1}, {5}}, {"shape", {1, 2}, {1, 2}}, {"x", {3}, {1, 4, 3}}},
        R"({"step": 2, "seed": 3})");

  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.h5"}), kDifferent);

  EXPECT_EQ(out(),
            "A  /d/a.h5\n"
            "B  /d/b.h5\n"
            "\n"
            "only in A:\n"
            "  gone  f32 []\n"
            "\n"
            "only in B:\n"
            "  more  f32 [1]\n"
            "\n"
            "different type or shape:\n"
            "  shape  f32 [2] in A, f32 [1, 2] in B\n"
            "\n"
            "different values:\n"
            "name  differing  elements  max difference  relative  NaN in A  NaN in B\n"
            "x             2         3               2       0.5         1         0\n"
            "\n"
            "metadata:\n"
            "  step: 1 in A, 2 in B\n"
            "\n"
            "different: 2 of 3 common arrays, 1 only in A, 1 only in B, metadata different\n");
}

TEST_F(Diff, TreatsNearValuesAsEqualWithATolerance) {
  write("/d/a.h5", {{"x", {2}, {1, 2}}});
  write("/d/b.h5", {{"x", {2}, {1, 2.5F}}});

  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.h5", "--tolerance", "0.4"}), kDifferent);
  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.h5", "--tolerance", "0.5"}), kDone);
  EXPECT_THAT(out(), HasSubstr("equal: 1 array within 0.5"));
  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.h5", "--tolerance", "-1"}), kNotDone);
}

TEST_F(Diff, IgnoresTheMetadataOnRequest) {
  write("/d/a.h5", {{"x", {1}, {1}}}, R"({"step": 1})");
  write("/d/b.h5", {{"x", {1}, {1}}}, R"({"step": 2})");

  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.h5"}), kDifferent);
  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/b.h5", "--ignore-metadata"}), kDone);
  EXPECT_THAT(out(), HasSubstr("equal: 1 array\n"));
}

TEST_F(Diff, ReturnsNotDoneWhenAFileCannotBeRead) {
  write("/d/a.h5", {{"x", {1}, {1}}});
  write("/d/b.h5", {{"x", {3000}, std::vector<float>(3000, 1)}});
  damage("/d/b.h5");

  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/missing.h5"}), kNotDone);
  EXPECT_EQ(run({"diff", "/d/b.h5", "/d/b.h5"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("/d/b.h5"));
  EXPECT_EQ(run({"diff", "/d/a.h5"}), kNotDone);
}

}  // namespace
}  // namespace holdfast::cli
