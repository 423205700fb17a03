#include "holdfast/nn/dense.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

TEST(Dense, OutputsAndGradientsAreThoseOfTheReference) {
  // Two products in a row: 5 x 7 paths meet in an output; in a gradient of the first kernel 4 samples x 3 outputs do,
  // or for its bias the same. Roundings of one path: its products and the sums of 7 and 5 terms, or 4 and 3.
  const Sequential model{Input{5}, Dense{7}, Dense{3}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    return reference::dense(reference::dense(x, 5, p[0], p[1], 7), 7, p[2], p[3], 3);
  };

  reference::expect_training_matches(model, 4, reference, {.paths = 36 + 8, .roundings = 16});
}

TEST(Dense, IsExactForNumbersOfColumnsAroundAVector) {
  // The bias gradient adds 16 columns at a time: widths below, at and above it. 6 samples x 1 path each.
  for (const std::int64_t units : {1, 15, 16, 17, 33}) {
    const Sequential model{Input{3}, Dense{units}};
    const auto reference = [units](const Values& x, const std::vector<Values>& p) {
      return reference::dense(x, 3, p[0], p[1], units);
    };

    reference::expect_training_matches(model, 6, reference, {.paths = 6, .roundings = 8});
  }
}

TEST(Dense, WorksAlongTheLastAxisAndKeepsTheOthers) {
  const Sequential model{Input{2, 3, 4}, Dense{5}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    return reference::dense(x, 4, p[0], p[1], 5);
  };

  EXPECT_EQ(model.output_shape(), (Shape{2, 3, 5}));
  // 2 samples x 6 positions meet in a gradient.
  reference::expect_training_matches(model, 2, reference, {.paths = 12, .roundings = 14});
}

TEST(Dense, NeedsNoBias) {
  const Sequential model{Input{4}, Dense{3, {.use_bias = false}}, Dense{2, {.use_bias = false}}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    return reference::dense(reference::dense(x, 4, p[0], {}, 3), 3, p[1], {}, 2);
  };

  EXPECT_EQ(model.parameters().entries().size(), 2U);
  reference::expect_training_matches(model, 3, reference, {.paths = 12, .roundings = 10});
}

TEST(Dense, AppliesItsActivation) {
  const Sequential model{Input{4}, Dense{6, {.activation = Activation::relu}}, Dense{2}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    const Values hidden = reference::activation("relu", reference::dense(x, 4, p[0], p[1], 6), 6);
    return reference::dense(hidden, 6, p[2], p[3], 2);
  };

  reference::expect_training_matches(model, 5, reference, {.paths = 30 + 7, .roundings = 16});
}

TEST(Dense, RefusesImpossibleNumbersOfUnits) {
  EXPECT_THROW(Dense{0}, Error);
  EXPECT_THROW(Dense{-3}, Error);
  EXPECT_THROW(Dense{Layer::kMaximumExtent + 1}, Error);
}

}  // namespace
}  // namespace holdfast
