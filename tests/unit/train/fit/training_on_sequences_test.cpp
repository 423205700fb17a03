// Trainings on samples of different lengths. Bits are compared exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/data/support/sentences.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

constexpr std::int64_t kSentences = 45;
constexpr std::int64_t kIds = 100 * kSentences + 7;

// A tag for each id.
Dataset tagged_sentences() {
  const Sequences ids = sentence_ids(kSentences);
  Tensor tags(ids.elements().shape());
  for (std::size_t i = 0; i < tags.values().size(); ++i) {
    tags.values()[i] = static_cast<float>(ids.elements().elements<std::int32_t>()[i] % 3);
  }
  const std::vector<std::int64_t> lengths(ids.lengths().begin(), ids.lengths().end());
  return from_sequences({{"ids", ids}}, {{"tags", Sequences(std::move(tags), lengths)}});
}

Model tagger(std::int64_t length) {
  const Value ids = input({length}, {.dtype = DType::i32, .name = "ids"});
  return Model(ids, Dense{3}(Embedding{kIds, 4}(ids)));
}

Outcome train_tagger(Replica& replica, const Dataset& data, std::int64_t length, std::int64_t epochs) {
  Trainer trainer(replica, tagger(length), Adam(0.02F), SparseCategoricalCrossentropy({.from_logits = true}),
                  {SparseCategoricalAccuracy{}});
  const FitResult fit = trainer.fit(data.padded(length).batch(4), {.epochs = epochs});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data.padded(length).batch(4)),
          fit.history};
}

Dataset bucketed_sentences() {
  return tagged_sentences().bucketed(4, {.bounds = {2, 4}});
}

TEST(TrainingOnSequences, GivesTheSameBitsOnAnyNumberOfReplicas) {
  const auto trained = [](int replicas) {
    return outcomes_of({.replicas = replicas},
                       [](Replica& replica) { return train_tagger(replica, bucketed_sentences(), 6, 2); });
  };
  const Outcome alone = trained(1).front();

  for (const int replicas : {2, 4}) {
    for (const Outcome& outcome : trained(replicas)) expect_equal(outcome, alone);
  }
}

TEST(TrainingOnSequences, GoesOnFromASavepoint) {
  const TemporaryFolder folder;
  const auto run = [&](std::int64_t epochs, bool saves) {
    return outcomes_of({.replicas = 2, .run_directory = saves ? folder.path() : ""},
                       [&](Replica& replica) { return train_tagger(replica, bucketed_sentences(), 6, epochs); })
        .front();
  };

  run(1, true);

  expect_equal(run(3, true), run(3, false));
}

// Padding counts neither in the loss nor in its mean nor in metrics.
TEST(TrainingOnSequences, DoesNotSeePadding) {
  const auto trained = [](std::int64_t length) {
    Replica replica = Replica::alone();
    return train_tagger(replica, tagged_sentences().filter([](const SampleArrays& sample) {
      return sample.inputs.elements<std::int32_t>("length")[0] > 0;
    }),
                        length, 2);
  };
  const Outcome short_padding = trained(6);
  const Outcome long_padding = trained(11);

  for (const auto& [name, value] : short_padding.evaluation) {
    EXPECT_NEAR(value, long_padding.evaluation.at(name), 1e-5) << name;
  }
}

// All outputs are zeros, so that the model says class 0 everywhere. Padding has the target 0, and the weight 0.
TEST(TrainingOnSequences, CountsPaddingInMetricsWithoutWeightsAlone) {
  const Sequences words(std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {4}});
  const Sequences tags(std::vector<std::vector<std::int32_t>>{{0, 1, 2}, {1}});
  const Dataset data = from_sequences({{"words", words}}, {{"tags", tags}}).padded(4).batch(2);
  const Value ids = input({4}, {.dtype = DType::i32, .name = "words"});
  Model model(ids, Dense{3}(Embedding{5, 2}(ids)));
  model.set_weights(std::vector<float>(model.parameters().float_count()), {});
  const std::vector<MetricHandle> accuracies = {
      SparseCategoricalAccuracy{{.name = "of_words"}}, unweighted(SparseCategoricalAccuracy{{.name = "of_positions"}}),
      unweighted(metrics::Perplexity{{.from_logits = true, .name = "of_values"}})};

  for (const int shards : {1, 2}) {
    Replica alone = Replica::alone({.shards = shards});
    Trainer trainer(alone, model, SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}), accuracies);
    const Logs results = trainer.evaluate(data);

    EXPECT_EQ(results.at("of_words"), 1.0 / 4);
    EXPECT_EQ(results.at("of_positions"), 5.0 / 8);
    EXPECT_NEAR(results.at("of_values"), 3, 1e-5);  // three classes, each as likely
    EXPECT_NEAR(results.at("loss"), std::log(3.0), 1e-6);
  }
}

// The model says that class 0 is e times as likely as each of the others. Half of the positions are ignored.
TEST(TrainingOnSequences, LeavesIgnoredClassesOutOfPerplexity) {
  for (const float ignored : {-1.0F, 0.0F}) {
    const Dataset data = from_tensors(Tensor(Shape{2, 4, 1}, std::vector<float>(8, 1)),
                                      Tensor(Shape{2, 4}, {ignored, 1, ignored, 2, ignored, ignored, ignored, 1}))
                             .batch(2);
    const Value x = input({4, 1});
    Model model(x, Dense{3, {.use_bias = false}}(x));
    std::vector<float> parameters(model.parameters().float_count());
    parameters[0] = 1;
    model.set_weights(std::move(parameters), {});
    const auto ignore_class = static_cast<std::int64_t>(ignored);
    const double loss = std::log(std::exp(1.0) + 2);

    for (const int shards : {1, 2}) {
      Replica alone = Replica::alone({.shards = shards});
      Trainer trainer(alone, model, SGD(0.1F),
                      SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = ignore_class}),
                      {metrics::Perplexity{{.from_logits = true, .ignore_class = ignore_class}},
                       metrics::SparseCategoricalCrossentropy{{.from_logits = true, .ignore_class = ignore_class}}});
      const Logs results = trainer.evaluate(data);

      EXPECT_NEAR(results.at("loss"), loss, 1e-6);
      EXPECT_NEAR(results.at("perplexity"), std::exp(loss), 1e-5);
      EXPECT_NEAR(results.at("sparse_categorical_crossentropy"), loss, 1e-6);
    }
  }
}

// As docs/data.md shows it: the mean of the words that are there.
TEST(TrainingOnSequences, TakesTheMaskAsAnInput) {
  const auto trained = [](std::int64_t length) {
    const Dataset data = sentences(kSentences).padded(length, {.keep = LengthInput::mask});
    const Value words = input({length}, {.dtype = DType::i32, .name = "ids"});
    const Value mask = input({length}, {.name = "mask"});
    const Value there = reshape(mask, {length, 1});
    const Value mean_word = sum(Embedding{kIds, 8}(words)*there, {0}) / (sum(there) + 1e-6F);
    Replica replica = Replica::alone();
    Trainer trainer(replica, Model({words, mask}, {Dense{kSentences}(mean_word)}), Adam(0.1F),
                    SparseCategoricalCrossentropy({.from_logits = true}), {SparseCategoricalAccuracy{}});
    return trainer.fit(data.batch(9), {.epochs = 10}).history.back();
  };
  const Logs narrow = trained(6);
  const Logs wide = trained(9);

  for (const auto& [name, value] : narrow) EXPECT_NEAR(value, wide.at(name), 1e-3) << name;
  EXPECT_GT(narrow.at("sparse_categorical_accuracy"), 0.5);
}

// Texts of many letters "a" are of one kind, and those of many "b" of the other.
TEST(TrainingOnSequences, LearnsAsThePageShowsIt) {
  std::vector<std::string> reviews;
  Tensor kinds(Shape{64});
  for (std::size_t i = 0; i < 64; ++i) {
    reviews.push_back(std::string(i, 'c') + (i % 2 == 0 ? "aaab" : "bbba") + std::string(2 * i, 'c'));
    kinds.values()[i] = static_cast<float>(i % 2);
  }
  const TextEncoder encoder = TextEncoder::fit(Text("abc"));

  std::vector<Tensor> ids;
  for (const std::string& review : reviews) ids.push_back(encoder.encode(review));  // i32 [length] each
  const Dataset data = from_sequences({{"words", Sequences(ids)}}, {{"kind", kinds}})
                           .bucketed(32, {.bounds = {32, 64}})
                           .padded(128, {.truncation = Truncation::keep_begin, .keep = LengthInput::mask})
                           .batch(32);

  const Value words = input({128}, {.dtype = DType::i32, .name = "words"}), mask = input({128}, {.name = "mask"});
  const Value there = reshape(mask, {128, 1});
  const Value vectors = Embedding{encoder.ids(), 32}(words);
  const Value mean_word = sum(vectors * there, {0}) / (sum(there) + 1e-6F);
  const Model model({words, mask}, {Dense{2}(mean_word)});
  Replica replica = Replica::alone();
  Trainer trainer(replica, model, Adam(0.1F), SparseCategoricalCrossentropy({.from_logits = true}),
                  {SparseCategoricalAccuracy{}});
  EXPECT_GT(trainer.fit(data, {.epochs = 40}).history.back().at("sparse_categorical_accuracy"), 0.9);
}

}  // namespace
}  // namespace holdfast
