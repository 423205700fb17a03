#include "data/stages/class_weight_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor six_inputs() {
  return Tensor(Shape{6, 1}, std::vector<float>{0, 1, 2, 3, 4, 5});
}

Dataset of_labels(const Tensor& labels) {
  return from_tensors({{"x", six_inputs()}}, {{"class", labels}});
}

// The weight of each sample.
std::vector<float> weights_of(const Dataset& data) {
  std::vector<float> weights;
  const RowLayout& layout = data.target_layout();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    std::vector<float> features(data.input_layout().words());
    std::vector<float> targets(layout.words());
    data.load(0, 0, i, {features, targets});
    weights.push_back(ArrayRow(layout, targets).elements<float>("sample_weight")[0]);
  }
  return weights;
}

TEST(ClassWeightStage, ReadsClassesOfEveryType) {
  const std::vector<Tensor> all = {Tensor(Shape{6}, std::vector<float>{0, 1, 1, 0, 0, 1}),
                                   Tensor(Shape{6, 1}, std::vector<std::int32_t>{0, 1, 1, 0, 0, 1}),
                                   Tensor(Shape{6}, std::vector<std::int64_t>{0, 1, 1, 0, 0, 1}),
                                   Tensor(Shape{6}, std::vector<std::uint8_t>{0, 1, 1, 0, 0, 1}),
                                   Tensor(Shape{6}, std::vector<std::uint16_t>{0, 1, 1, 0, 0, 1}),
                                   Tensor(Shape{6, 2}, std::vector<float>{1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1})};
  for (const Tensor& labels : all) {
    SCOPED_TRACE(name(labels.dtype()));
    const Dataset data = with_class_weights(of_labels(labels).batch(2), {2, 5});

    EXPECT_TRUE(data.has_sample_weights());
    EXPECT_EQ(data.targets().size(), 1U);
    EXPECT_THAT(weights_of(data), ElementsAre(2, 5, 5, 2, 2, 5));
  }
}

TEST(ClassWeightStage, KeepsWhatFollowsTheStages) {
  const Dataset data = with_class_weights(
      of_labels(Tensor(Shape{6})).batch(4, {.drop_remainder = true}).prefetch(3, {.threads = 2}), {1});

  EXPECT_EQ(data.batch_size(), 4);
  EXPECT_EQ(data.batches(), 1);
  EXPECT_EQ(data.prefetch_depth(), 3);
  EXPECT_EQ(data.prefetch_threads(), 2);
}

TEST(ClassWeightStage, NamesTheSampleOfTheSourceAfterAShuffle) {
  const Dataset data =
      with_class_weights(of_labels(Tensor(Shape{6}, std::vector<float>{0, 0, 0, 0, 7, 0})).shuffle().batch(2), {1, 1});

  const std::string sentence = sentence_thrown_by([&] { weights_of(data); });

  EXPECT_THAT(sentence, HasSubstr("sample 4 is of class 7, and there are weights for 2 classes"));
}

TEST(ClassWeightStage, RefusesWhatIsNotAClass) {
  const auto refusal = [](const Tensor& labels, const std::vector<float>& weights) {
    return sentence_thrown_by([&] { weights_of(with_class_weights(of_labels(labels).batch(2), weights)); });
  };

  EXPECT_THAT(refusal(Tensor(Shape{6}, std::vector<float>{0, 0.5F, 0, 0, 0, 0}), {1}),
              HasSubstr("the target of sample 1 is 0.5"));
  EXPECT_THAT(refusal(Tensor(Shape{6}, std::vector<float>{0, 0, -1, 0, 0, 0}), {1}), HasSubstr("sample 2 is -1"));
  EXPECT_THAT(refusal(Tensor(Shape{6}, std::vector<float>{NAN, 0, 0, 0, 0, 0}), {1}), HasSubstr("sample 0 is nan"));
  EXPECT_THAT(refusal(Tensor(Shape{6, 2}), {1, 1}), HasSubstr("a row of 2 numbers that is not one-hot"));
  EXPECT_THAT(refusal(Tensor(Shape{6, 2}), {1, 1, 1}), HasSubstr("3 class weights for one-hot rows of 2 classes"));
  EXPECT_THAT(refusal(Tensor(Shape{6}), {-1}), HasSubstr("the weight of class 0 is -1"));
  EXPECT_THAT(refusal(Tensor(Shape{6}), {1, INFINITY}), HasSubstr("the weight of class 1 is inf"));
}

TEST(ClassWeightStage, RefusesSeveralTargets) {
  const Dataset data = from_tensors({{"x", six_inputs()}}, {{"a", Tensor(Shape{6})}, {"b", Tensor(Shape{6})}});

  EXPECT_THAT(sentence_thrown_by([&] { with_class_weights(data.batch(2), {1}); }), HasSubstr("these have 2"));
  EXPECT_THAT(sentence_thrown_by([&] { balanced_class_weights(data); }), HasSubstr("these have 2"));
}

// As compute_class_weight("balanced", classes=[0, 1, 3], y=[0, 0, 0, 1, 3, 3]) of scikit-learn: 6 / (3 * [3, 1, 2]).
TEST(BalancedClassWeights, MakeAllClassesCountAlike) {
  const Dataset data = of_labels(Tensor(Shape{6}, std::vector<std::int32_t>{0, 0, 0, 1, 3, 3}));

  EXPECT_THAT(balanced_class_weights(data.shuffle().batch(4)), ElementsAre(6.0F / 9, 2, 1, 1));
}

TEST(BalancedClassWeights, CountOneHotRows) {
  const Dataset data = of_labels(Tensor(Shape{6, 3}, std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0, 0,  //
                                                                        1, 0, 0, 0, 1, 0, 0, 1, 0}));

  // The third class has no sample.
  EXPECT_THAT(balanced_class_weights(data), ElementsAre(0.75F, 1.5F, 1));
}

TEST(BalancedClassWeights, AreThoseOfThePartThatIsGiven) {
  const Dataset data = of_labels(Tensor(Shape{6}, std::vector<float>{0, 1, 1, 1, 0, 0}));

  EXPECT_THAT(balanced_class_weights(data.take(4)), ElementsAre(2, 4.0F / 6));
}

}  // namespace
}  // namespace holdfast
