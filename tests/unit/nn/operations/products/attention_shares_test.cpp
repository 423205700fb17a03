#include "nn/operations/products/attention_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/backend.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

// Equal scores give equal shares, so that a share says how many keys a query has.
std::vector<float> shares_of(const compute::AttentionScores& scores, const std::vector<float>& mask = {}) {
  const auto backend = compute::make_cpu_backend(1);
  std::vector<float> shares(static_cast<std::size_t>(scores.rows() * scores.keys), 3.0F);
  backend->array_kernels().attention_shares(scores, shares.data(), mask.empty() ? nullptr : mask.data(), shares.data());
  return shares;
}

TEST(AttentionShares, AreThoseOfTheKeysThatCausalityAndWindowLeave) {
  EXPECT_THAT(shares_of({.queries = 3, .keys = 2}), ElementsAre(.5F, .5F, .5F, .5F, .5F, .5F));
  EXPECT_THAT(shares_of({.queries = 3, .keys = 2, .is_causal = true}), ElementsAre(1, 0, .5F, .5F, .5F, .5F));
  EXPECT_THAT(shares_of({.queries = 3, .keys = 3, .window = 1}), ElementsAre(1, 0, 0, 0, 1, 0, 0, 0, 1));
  EXPECT_THAT(shares_of({.queries = 2, .keys = 4, .window = 2}),
              ElementsAre(.5F, .5F, 0, 0, 1 / 3.0F, 1 / 3.0F, 1 / 3.0F, 0));
  EXPECT_THAT(shares_of({.queries = 3, .keys = 3, .is_causal = true, .window = 2}),
              ElementsAre(1, 0, 0, .5F, .5F, 0, 0, .5F, .5F));
  // The third query has no key in its window.
  EXPECT_THAT(shares_of({.queries = 3, .keys = 1, .window = 2}), ElementsAre(1, 1, 0));
}

TEST(AttentionShares, LeaveOutMaskedKeys) {
  const compute::AttentionScores scores = {.samples = 2, .heads = 2, .queries = 1, .keys = 2, .mask_of_sample = 2};

  EXPECT_THAT(shares_of(scores, {1, 0, 0, 0}), ElementsAre(1, 0, 1, 0, 0, 0, 0, 0));
}

TEST(AttentionShares, PassGradientsToTheKeysThatHaveShares) {
  const auto backend = compute::make_cpu_backend(1);
  const compute::AttentionScores scores = {.queries = 2, .keys = 2, .scale = 2, .is_causal = true};
  const std::vector<float> shares = {1, 0, .5F, .5F}, of_shares = {5, 7, 1, 3};
  std::vector<float> of_scores(4, 9);

  backend->array_kernels().attention_shares_backward(scores, shares.data(), of_shares.data(), of_scores.data());

  EXPECT_THAT(of_scores, ElementsAre(0, 0, -1, 1));
}

}  // namespace
}  // namespace holdfast
