#include "holdfast/nn/group_normalization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/sequential.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using reference::Values;
using testing::HasSubstr;

struct Groups {
  std::size_t samples, outer, channels, inner, groups;
};

// [samples, outer, channels, inner]; gamma and beta by channel.
Values normalized_groups(const Values& x, const Groups& shape, const Values& gamma, const Values& beta) {
  const std::size_t in_group = shape.channels / shape.groups;
  const auto place = [&](std::size_t sample, std::size_t outer, std::size_t channel, std::size_t inner) {
    return ((sample * shape.outer + outer) * shape.channels + channel) * shape.inner + inner;
  };
  Values y(x.size());
  for (std::size_t sample = 0; sample < shape.samples; ++sample) {
    for (std::size_t group = 0; group < shape.groups; ++group) {
      std::vector<std::size_t> members;
      for (std::size_t outer = 0; outer < shape.outer; ++outer) {
        for (std::size_t channel = group * in_group; channel < (group + 1) * in_group; ++channel) {
          for (std::size_t inner = 0; inner < shape.inner; ++inner) {
            members.push_back(place(sample, outer, channel, inner));
          }
        }
      }
      double mean = 0, variance = 0;
      for (const std::size_t member : members) mean += x[member] / static_cast<double>(members.size());
      for (const std::size_t member : members) {
        variance += (x[member] - mean) * (x[member] - mean) / static_cast<double>(members.size());
      }
      for (const std::size_t member : members) {
        const std::size_t channel = member / shape.inner % shape.channels;
        y[member] = (x[member] - mean) / std::sqrt(variance + 0.1) * gamma[channel] + beta[channel];
      }
    }
  }
  return y;
}

// An epsilon of 0.1 bounds the slopes by 1 / sqrt(0.1), about 3.2.
constexpr reference::Rounding kGroupRounding = {.paths = 2 * 5 * 6 * 4, .roundings = 30, .largest_path = 12};

TEST(GroupNormalization, MatchesTheReference) {
  for (const std::int64_t groups : {1, 2, 3, -1}) {
    const Sequential model{Input{5, 3}, Dense{6}, GroupNormalization{groups, {.epsilon = 0.1F}}};
    const auto reference = [&](const Values& x, const std::vector<Values>& p) {
      const Values features = reference::dense(x, 3, p[0], p[1], 6);
      return normalized_groups(features, {2, 5, 6, 1, static_cast<std::size_t>(groups == -1 ? 6 : groups)}, p[2], p[3]);
    };

    reference::expect_training_matches(model, 2, reference, kGroupRounding);
  }
}

TEST(GroupNormalization, TakesChannelsFromAnyAxis) {
  const Sequential model{Input{4, 3}, Dense{5}, GroupNormalization{2, {.axis = 0, .epsilon = 0.1F}}};
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    return normalized_groups(reference::dense(x, 3, p[0], p[1], 5), {2, 1, 4, 5, 2}, p[2], p[3]);
  };

  reference::expect_training_matches(model, 2, reference, kGroupRounding);
}

TEST(GroupNormalization, HasTheParametersThatItWasAskedFor) {
  const Sequential none{Input{3, 4}, GroupNormalization{2, {.has_scale = false, .has_center = false}}};
  const Sequential both{Input{3, 4}, GroupNormalization{2}};

  EXPECT_EQ(none.parameters().entries().size(), 0U);
  ASSERT_EQ(both.parameters().entries().size(), 2U);
  EXPECT_EQ(both.parameters().entries()[0].shape, (Shape{4}));
  EXPECT_EQ(Sequential::from_graph(none.graph()).graph(), none.graph());
}

TEST(GroupNormalization, RefusesOptionsAndInputsThatItCannotTake) {
  EXPECT_THAT(refusal([] { GroupNormalization{0}; }), HasSubstr("GroupNormalization needs -1 or a number of groups"));
  EXPECT_THAT(refusal([] {
                GroupNormalization{2, {.epsilon = 0}};
              }),
              HasSubstr("needs a finite epsilon above 0, not 0"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{3, 4}, GroupNormalization{3}};
              }),
              HasSubstr("its 3 groups must divide the 4 channels of axis -1"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{3, 4}, GroupNormalization{3, {.axis = 2}}};
              }),
              HasSubstr("GroupNormalization was given axis 2 of a value of shape [3, 4]"));
}

}  // namespace
}  // namespace holdfast
