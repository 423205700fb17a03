#include "holdfast/nn/advanced_activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;

Floats activated(Sequential model, const Floats& x) {
  Floats parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(1, parameters, buffers);
  model.set_weights(parameters, buffers);
  return model.predict(Tensor(model.input_shape().with_batch(1), x)).values();
}

TEST(AdvancedActivations, FollowTheirFormulas) {
  const Floats x = {-2, 0.25F, 1, 5};
  EXPECT_THAT(activated(Sequential{Input{4}, ReLU{}}, x), ElementsAre(0, 0.25F, 1, 5));
  EXPECT_THAT(activated(Sequential{Input{4}, ReLU{{.max_value = 3, .negative_slope = 0.5F, .threshold = 0.5F}}}, x),
              ElementsAre(-1.25F, -0.125F, 1, 3));
  EXPECT_THAT(activated(Sequential{Input{4}, LeakyReLU{0.5F}}, x), ElementsAre(-1, 0.25F, 1, 5));
  EXPECT_THAT(activated(Sequential{Input{4}, PReLU{{.alpha_initializer = Initializer::constant(0.25F)}}}, x),
              ElementsAre(-0.5F, 0.25F, 1, 5));
  EXPECT_NEAR(activated(Sequential{Input{4}, ELU{2}}, x)[0], 2 * (std::exp(-2.0) - 1), 8 * 0x1p-24);
}

TEST(AdvancedActivations, SoftmaxGoesAlongItsAxis) {
  EXPECT_THAT(activated(Sequential{Input{2, 2}, Softmax{{.axis = 0}}}, {1, 5, 1, 5}),
              ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
  EXPECT_EQ((Sequential{Input{4}, Softmax{}}.output_activation()), Activation::softmax);
}

TEST(AdvancedActivations, SharedAxesHaveOneAlpha) {
  const Sequential model{Input{4, 5, 3}, PReLU{{.shared_axes = {0, 1}}}};

  EXPECT_EQ(model.parameters().entries()[0].shape, (Shape{1, 1, 3}));
}

TEST(AdvancedActivations, AreWrittenToTheGraphAndReadFromIt) {
  const Sequential model{Input{2, 3},         ReLU{}, ReLU{{.max_value = 3, .negative_slope = 0.5F}},
                         LeakyReLU{},         ELU{},  PReLU{{.shared_axes = {-1}}},
                         Softmax{{.axis = 0}}};

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
}

TEST(AdvancedActivations, RefuseOptionsThatTheyCannotTake) {
  EXPECT_THAT(refusal([] { ReLU{{.max_value = -1}}; }), HasSubstr("relu needs a max_value of at least 0, not -1"));
  EXPECT_THAT(refusal([] { ReLU{{.negative_slope = -1}}; }), HasSubstr("relu needs a finite number of at least 0"));
  EXPECT_THAT(refusal([] { LeakyReLU{-0.5F}; }), HasSubstr("LeakyReLU needs a finite slope of at least 0, not -0.5"));
  EXPECT_THAT(refusal([] { ELU{NAN}; }), HasSubstr("elu needs a finite number, not nan"));
  EXPECT_THAT(refusal([] {
                PReLU{{.shared_axes = {1, 1}}};
              }),
              HasSubstr("PReLU needs different shared axes, not [1, 1]"));
  EXPECT_THAT(refusal([] { Sequential{Input{3}, PReLU{{.shared_axes = {1}}}}; }), HasSubstr("PReLU was given axis 1"));
  EXPECT_THAT(refusal([] { Sequential{Input{3}, Softmax{{.axis = 1}}}; }), HasSubstr("Softmax was given axis 1"));
}

}  // namespace
}  // namespace holdfast
