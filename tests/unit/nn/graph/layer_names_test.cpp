#include "nn/graph/layer_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LayerNames, AreChosenAroundThoseThatWereGiven) {
  EXPECT_THAT(name_layers({{"", "Dense"}, {"dense_1", "Dense"}, {"", "Dense"}, {"", "MaxPooling2D"}}),
              ElementsAre("dense", "dense_1", "dense_2", "max_pooling2d"));
}

TEST(LayerNames, AllowOnlyWeightNamesThatFilesCanHold) {
  for (const char* name : {"kernel", "cell/kernel", "a-b_c.1"}) check_weight_name(name);
  for (const char* name : {"", "..", "/kernel", "kernel/", "a//b", "a b", ".kernel"}) {
    EXPECT_THAT(refusal([&] { check_weight_name(name); }), HasSubstr("which no savepoint can hold")) << name;
  }
}

TEST(LayerNames, RefuseAWeightInsideAnotherOne) {
  check_weight_paths({"n/kernel", "n/kernels", "m/kernel"});
  EXPECT_THAT(refusal([] {
                check_weight_paths({"n/kernel/kernel", "n/kernel"});
              }),
              HasSubstr("\"n/kernel/kernel\" would lie inside the weight \"n/kernel\""));
}

}  // namespace
}  // namespace holdfast
