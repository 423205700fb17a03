#pragma once

// What tests of language models share.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/sparse_categorical_crossentropy.h"
#include "holdfast/optim/adam.h"
#include "holdfast/train/replica.h"
#include "holdfast/train/trainer.h"

namespace holdfast {

inline Tensor ids_tensor(const Shape& shape, const std::vector<std::int32_t>& ids) {
  return Tensor(shape, ids);
}

inline void begin_with_draws(Model& model) {
  std::vector<float> parameters(model.parameters().float_count());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(1, parameters, buffers);
  model.set_weights(std::move(parameters), std::move(buffers));
}

// The scores of all positions but the last have the same bits, whatever the last id is.
inline void expect_causal(Model model, std::int64_t length, std::int64_t vocabulary) {
  begin_with_draws(model);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(i * i % vocabulary));

  const Tensor before = model.predict(ids_tensor({1, length}, ids));
  ids.back() = static_cast<std::int32_t>((ids.back() + 1) % vocabulary);
  const Tensor after = model.predict(ids_tensor({1, length}, ids));

  ASSERT_EQ(before.shape(), (Shape{1, length, vocabulary}));
  const auto last = static_cast<std::ptrdiff_t>((length - 1) * vocabulary);
  EXPECT_TRUE(std::equal(before.values().begin(), before.values().begin() + last, after.values().begin()));
  EXPECT_FALSE(std::equal(before.values().begin() + last, before.values().end(), after.values().begin() + last));
}

// Each id is followed by the next one; samples begin anywhere. Chance has a loss of log(vocabulary).
inline Dataset counting_samples(std::int64_t length, std::int64_t vocabulary) {
  const std::int64_t samples = 4 * vocabulary;
  std::vector<std::int32_t> ids;
  std::vector<float> next;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<std::int32_t>((sample + i) % vocabulary));
      next.push_back(static_cast<float>((sample + i + 1) % vocabulary));
    }
  }
  return from_tensors(Tensor({samples, length}, ids), Tensor({samples, length}, std::move(next)));
}

// The loss of the last epoch.
inline double loss_after_training(const Model& model, std::int64_t length, std::int64_t vocabulary) {
  Replica replica = Replica::alone({.seed = 3, .shards = 2});
  Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  return trainer.fit(counting_samples(length, vocabulary).shuffle().batch(8), {.epochs = 30}).results.at("loss");
}

}  // namespace holdfast
