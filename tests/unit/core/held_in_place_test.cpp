#include "core/held_in_place.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

using Floats = std::vector<float>;

TEST(HeldInPlace, AreCopiedBeforeTheyChange) {
  Floats array = {1, 2, 3};
  Floats target(3);
  const std::span<const float> source(array);
  const std::span<float> to(target);

  const std::unique_ptr<HeldArrays> held = host_memory().hold(std::span(&source, 1));
  held->begin_copy(std::span(&to, 1));
  array = {7, 8, 9};
  held->finish_copy();

  EXPECT_EQ(target, (Floats{1, 2, 3}));
  EXPECT_FALSE(held->obstacle().empty());
}

TEST(HeldInPlace, HaveTheDigestOfWhenTheyWereHeld) {
  Floats array = {1, 2, 3};
  const std::span<const float> source(array);
  const Digest before = host_memory().digest_of(std::span(&source, 1));

  const std::unique_ptr<HeldArrays> held = host_memory().hold(std::span(&source, 1));
  array = {7, 8, 9};

  EXPECT_EQ(held->digest(), before);
}

}  // namespace
}  // namespace holdfast
