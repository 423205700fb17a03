// From the third step on, our code allocates nothing between a batch and the update that it leads to. What oneDNN
// allocates meanwhile is printed, not judged.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "holdfast/holdfast.h"
#include "train/step/model_trainable.h"
#include "unit/train_allocations/support/counted_allocations.h"

namespace holdfast {
namespace {

constexpr std::int64_t kShardSamples = 8;
constexpr std::int64_t kSteps = 6;

using Floats = std::vector<float>;

Floats random_floats(std::size_t count) {
  Random random(1, Purpose::user, 0, 0);
  Floats floats(count);
  for (float& value : floats) value = random.normal();
  return floats;
}

Floats class_labels(std::int64_t classes) {
  Floats labels(kShardSamples);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(i % static_cast<std::size_t>(classes));
  return labels;
}

// Steps of two shards of the same samples. Returns what steps from the third one on allocate.
AllocationCounts allocations_of_steps(ModelTrainable& trainable, ShardBatch batch) {
  trainable.prepare({.count = 1, .threads_per_shard = 1});
  trainable.initialize(5);
  Floats first(trainable.gradient_count()), second(first.size()), sums(trainable.sum_names().size());
  batch.seed = 7;
  batch.samples = kShardSamples;
  batch.batch_samples = 2 * kShardSamples;
  const auto step = [&](std::int64_t number) {
    batch.step = number;
    for (Floats* const gradients : {&first, &second}) {
      batch.first_sample = gradients == &first ? 0 : kShardSamples;
      GradientSink sink(*gradients);
      trainable.compute_gradients(batch, sink, sums);
    }
    std::transform(first.begin(), first.end(), second.begin(), first.begin(), std::plus<>());
    trainable.apply_update({.step = number + 1, .batch_samples = batch.batch_samples, .gradients = first});
  };
  step(0);
  step(1);
  CountedAllocations counted;
  for (std::int64_t number = 2; number < kSteps; ++number) step(number);
  return counted.stop();
}

void expect_no_allocation(ModelTrainable& trainable, const ShardBatch& batch) {
  const AllocationCounts counts = allocations_of_steps(trainable, batch);

  EXPECT_EQ(counts.own, 0) << CountedAllocations::callers();
  std::printf("oneDNN called operator new %lld times in %lld steps of two shards\n",
              static_cast<long long>(counts.onednn), static_cast<long long>(kSteps - 2));
}

TEST(StepAllocations, AreCounted) {
  CountedAllocations counted;
  const Floats floats(100);

  EXPECT_EQ(counted.stop().own, 1);
  EXPECT_NE(CountedAllocations::callers(), "");
}

TEST(StepAllocations, DoNotHappenForAChain) {
  ModelTrainable trainable(
      Sequential{Input{16, 16, 1}, Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::relu}},
                 MaxPooling2D{2}, Conv2D{16, 3, {.activation = Activation::tanh}}, AveragePooling2D{2}, Flatten{},
                 Dense{24, {.activation = Activation::relu}}, Dense{10}},
      Adam(0.01F), {SparseCategoricalCrossentropy{{.from_logits = true}}}, {SparseCategoricalAccuracy{}});
  const Floats images = random_floats(kShardSamples * 256), labels = class_labels(10);

  expect_no_allocation(trainable, {.features = images, .targets = labels});
}

TEST(StepAllocations, DoNotHappenForAGraphWithNormalizationAndDropout) {
  const Value image = input({8, 8, 4});
  const Value first = BatchNormalization{}(Conv2D{8, 3, {.padding = Padding::same}}(image));
  const Value second = Conv2D{8, 3, {.padding = Padding::same}}(Dropout{0.2F}(relu(first)));
  const Value pooled = GlobalAveragePooling{}(relu(first + second));
  ModelTrainable trainable(Model(image, Dense{5, {.activation = Activation::softmax}}(LayerNormalization{}(pooled))),
                           SGD{{.learning_rate = 0.1F, .momentum = 0.9F}}, {SparseCategoricalCrossentropy{}},
                           {SparseCategoricalAccuracy{}});
  const Floats images = random_floats(kShardSamples * 256), labels = class_labels(5);

  expect_no_allocation(trainable, {.features = images, .targets = labels});
}

TEST(StepAllocations, DoNotHappenForTwoInputs) {
  const Value words = input({4}, {.dtype = DType::i32, .name = "words"});
  const Value traits = input({3}, {.name = "traits"});
  const Value both = Concatenate{}(Flatten{}(Embedding{20, 6}(words)), gelu(traits));
  ModelTrainable trainable(Model({words, traits}, {Dense{1}(Dense{9, {.activation = Activation::sigmoid}}(both))}),
                           Adam(0.01F), {BinaryCrossentropy{{.from_logits = true}}}, {BinaryAccuracy{}});
  const RowLayout layout(trainable.inputs());
  Floats rows(static_cast<std::size_t>(kShardSamples) * layout.words()), labels = class_labels(2);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    ArrayRow row(layout, std::span(rows).subspan(sample * layout.words(), layout.words()));
    std::ranges::fill(row.elements<std::int32_t>("words"), static_cast<std::int32_t>(sample));
    std::ranges::fill(row.elements<float>("traits"), 0.5F);
  }

  expect_no_allocation(trainable, {.features = rows, .targets = labels, .input_layout = &layout});
}

TEST(StepAllocations, DoNotHappenForScoresInTiles) {
  ModelTrainable trainable(Sequential{Input{6}, Dense{5, {.activation = Activation::tanh}}, Dense{9}}, SGD(0.1F),
                           {SparseCategoricalCrossentropy{{.from_logits = true, .positions_at_once = 3}}},
                           {SparseCategoricalAccuracy{}});
  const Floats x = random_floats(kShardSamples * 6), labels = class_labels(9);

  expect_no_allocation(trainable, {.features = x, .targets = labels});
}

}  // namespace
}  // namespace holdfast
