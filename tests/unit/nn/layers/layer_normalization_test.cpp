#include "holdfast/nn/layer_normalization.h"

#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/sequential.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

// Rows of `channels`; beta is not added where it is empty, nor the mean taken away if `centers` is false.
Values normalized(const Values& x, std::size_t channels, double epsilon, bool centers, const Values& gamma,
                  const Values& beta) {
  Values y;
  for (std::size_t row = 0; row < x.size(); row += channels) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; centers && c < channels; ++c) mean += x[row + c] / static_cast<double>(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      variance += (x[row + c] - mean) * (x[row + c] - mean) / static_cast<double>(channels);
    }
    for (std::size_t c = 0; c < channels; ++c) {
      y.push_back((x[row + c] - mean) / std::sqrt(variance + epsilon) * gamma[c] + (beta.empty() ? 0 : beta[c]));
    }
  }
  return y;
}

// An inverse deviation of rows of 6 sums of products is below 4 in this data.
constexpr reference::Rounding kRounding = {.paths = 3 * 2 * 4 * 6, .roundings = 30, .largest_path = 8};

TEST(LayerNormalization, MatchesTheReference) {
  const Sequential model{Input{2, 4}, Dense{6}, LayerNormalization{{.epsilon = 0.01F}}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    return normalized(reference::dense(x, 4, p[0], p[1], 6), 6, 0.01F, true, p[2], p[3]);
  };

  reference::expect_training_matches(model, 3, reference, kRounding);
  EXPECT_EQ(model.parameters().entries()[2].name, "layer_normalization/gamma");
  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
}

TEST(LayerNormalization, LeavesScaleAndCenterOut) {
  const Sequential model{Input{4}, LayerNormalization{{.has_scale = false, .has_center = false}}};

  EXPECT_EQ(model.parameters().entries().size(), 0U);
  EXPECT_THROW((LayerNormalization{{.epsilon = 0}}), Error);
}

TEST(RMSNormalization, MatchesTheReference) {
  const Sequential model{Input{2, 4}, Dense{6}, RMSNormalization{{.epsilon = 0.01F}}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    return normalized(reference::dense(x, 4, p[0], p[1], 6), 6, 0.01F, false, p[2], {});
  };

  reference::expect_training_matches(model, 3, reference, kRounding);
  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  EXPECT_THROW((RMSNormalization{{.epsilon = NAN}}), Error);
}

}  // namespace
}  // namespace holdfast
