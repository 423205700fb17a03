// Trainings of models with several inputs and outputs, typed data and sample weights. Bits are compared exactly.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kSamples = 45;

struct Arrays {
  std::vector<std::int32_t> ids;
  std::vector<float> numbers;
  std::vector<std::uint8_t> labels;
  std::vector<float> values;
  std::vector<float> weights;
};

Arrays arrays() {
  Arrays arrays;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    arrays.ids.push_back(static_cast<std::int32_t>(random.below(6)));
    for (int number = 0; number < 3; ++number) arrays.numbers.push_back(random.normal());
    arrays.labels.push_back(static_cast<std::uint8_t>(arrays.ids.back() % 3));
    arrays.values.push_back(arrays.numbers.back());
    arrays.weights.push_back(i % 5 == 0 ? 0 : i % 2 == 0 ? 0.25F : 1);
  }
  return arrays;
}

Dataset data_of(const Arrays& a, bool has_weights) {
  return from_tensors({{"id", Tensor(Shape{kSamples, 1}, a.ids)}, {"numbers", Tensor(Shape{kSamples, 3}, a.numbers)}},
                      {{"kind", Tensor(Shape{kSamples}, a.labels)}, {"value", Tensor(Shape{kSamples, 1}, a.values)}},
                      has_weights ? std::optional(Tensor(Shape{kSamples}, a.weights)) : std::nullopt);
}

Model two_towers() {
  const Value id = input({1}, {.dtype = DType::i32, .name = "id"});
  const Value numbers = input({3}, {.name = "numbers"});
  const Value both = Dropout{0.2F}(Concatenate{}(Flatten{}(Embedding{6, 4}(id)), Dense{4}(numbers)));
  const Value normal = BatchNormalization{}(both);
  return Model({id, numbers}, {Dense{3, {.name = "kind"}}(normal), Dense{1, {.name = "value"}}(normal)});
}

Outcome train(Replica& replica, const Dataset& data, const Model& model = two_towers()) {
  Trainer trainer(replica, model, Adam(0.02F),
                  {SparseCategoricalCrossentropy({.from_logits = true}), {MeanSquaredError{}, 0.5F}},
                  {{SparseCategoricalAccuracy{}, "kind"}, {MeanAbsoluteError{}, "value"}});
  const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = 2});
  const Logs evaluation = trainer.evaluate(data.batch(8));
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, evaluation, fit.history};
}

TEST(SeveralArrays, GiveTheSameBitsOnAnyNumberOfReplicas) {
  for (const bool has_weights : {false, true}) {
    const Dataset data = data_of(arrays(), has_weights);
    const auto trained = [&](int replicas) {
      return outcomes_of({.replicas = replicas}, [&](Replica& replica) { return train(replica, data); });
    };
    const Outcome alone = trained(1).front();

    for (const int replicas : {2, 4}) {
      for (const Outcome& outcome : trained(replicas)) expect_equal(outcome, alone);
    }
  }
}

// As data_of(), in another order.
Dataset reordered_data_of(const Arrays& a) {
  return from_tensors({{"numbers", Tensor(Shape{kSamples, 3}, a.numbers)}, {"id", Tensor(Shape{kSamples, 1}, a.ids)}},
                      {{"value", Tensor(Shape{kSamples, 1}, a.values)}, {"kind", Tensor(Shape{kSamples}, a.labels)}},
                      Tensor(Shape{kSamples}, a.weights));
}

TEST(SeveralArrays, AreTakenByTheNamesOfTheModel) {
  const auto trained = [](const Dataset& data) {
    return outcomes_of({.replicas = 2}, [&](Replica& replica) { return train(replica, data); }).front();
  };

  expect_equal(trained(reordered_data_of(arrays())), trained(data_of(arrays(), true)));
}

TEST(SeveralArrays, AreTakenByNameInPredictions) {
  const auto predicted = [](const Dataset& data) {
    Replica replica = Replica::alone();
    Trainer trainer(replica, two_towers(), Adam(0.02F),
                    {SparseCategoricalCrossentropy({.from_logits = true}), MeanSquaredError{}});
    std::vector<float> values;
    trainer.predict(data.batch(9), [&](std::int64_t, const std::vector<Tensor>& outputs) {
      for (const Tensor& output : outputs) values.insert(values.end(), output.values().begin(), output.values().end());
    });
    return values;
  };

  EXPECT_EQ(predicted(reordered_data_of(arrays())), predicted(data_of(arrays(), true)));
}

// Only some of the names are those of the model, so nothing tells where the others belong.
TEST(SeveralArrays, AreRefusedInAnotherOrderWithoutAllNames) {
  Arrays a = arrays();
  const Dataset data =
      from_tensors({{"numbers", Tensor(Shape{kSamples, 3}, a.numbers)}, {"", Tensor(Shape{kSamples, 1}, a.ids)}},
                   {{"kind", Tensor(Shape{kSamples}, a.labels)}, {"value", Tensor(Shape{kSamples, 1}, a.values)}});
  Replica replica = Replica::alone();

  EXPECT_THAT(sentence_thrown_by([&] { train(replica, data); }),
              HasSubstr("give the arrays in the order of the model, or all of"));
}

TEST(SeveralOutputs, AreLoggedByNameAndAddUpToTheLoss) {
  Replica replica = Replica::alone();

  const Logs logs = train(replica, data_of(arrays(), false)).evaluation;

  EXPECT_THAT(logs.at("loss"), DoubleNear(logs.at("kind_loss") + 0.5 * logs.at("value_loss"), 1e-5));
  EXPECT_TRUE(logs.contains("kind_sparse_categorical_accuracy"));
  EXPECT_TRUE(logs.contains("value_mean_absolute_error"));
}

// What a sample of weight 0 holds cannot be seen in any bit, even if its label names no class.
TEST(SampleWeights, MaskSamples) {
  Arrays changed = arrays();
  for (std::size_t i = 0; i < changed.weights.size(); i += 5) {
    changed.labels[i] = 200;
    changed.values[i] = 1e30F;
  }
  const auto trained = [](const Arrays& given) {
    return outcomes_of({.replicas = 2}, [&](Replica& replica) { return train(replica, data_of(given, true)); }).front();
  };

  expect_equal(trained(arrays()), trained(changed));
}

// A dense layer's gradient of one batch by hand: the mean over weights, not over samples.
TEST(SampleWeights, DivideByTheirSumOverTheBatch) {
  const Dataset data = from_tensors({{"x", Tensor(Shape{3, 1}, {1, 2, 3})}}, {{"y", Tensor(Shape{3, 1}, {1, 1, 1})}},
                                    Tensor(Shape{3}, {1, 0, 0.5F}));
  const auto train_dense = [&](int shards) {
    double weight = 0;
    train_on_threads({.replicas = 1, .shards = shards}, [&](Replica& replica) {
      Sequential model{Input{1}, Dense{1, {.use_bias = false, .kernel_initializer = Initializer::zeros()}}};
      Trainer trainer(replica, model, SGD(1.0F), MeanSquaredError{});
      const Logs results = trainer.fit(data.batch(3)).results;
      EXPECT_EQ(results.at("loss"), 1.0);
      weight = static_cast<double>(model.parameter_values()[0]);
    });
    return weight;
  };

  // d/dw of (1 * (w - 1)^2 + 0.5 * (3 w - 1)^2) / 1.5 at w = 0 is -2 * (1 + 1.5) / 1.5.
  EXPECT_THAT(train_dense(1), DoubleNear(2 * 2.5 / 1.5, 1e-6));
  EXPECT_EQ(train_dense(3), train_dense(1));
}

TEST(SampleWeights, ApplyNothingIfTheyAreZeroForAWholeBatch) {
  const Dataset data = from_tensors({{"x", Tensor(Shape{2, 1}, {1, 2})}}, {{"y", Tensor(Shape{2, 1}, {1, 1})}},
                                    Tensor(Shape{2}, {0, 0}));
  Replica replica = Replica::alone();
  Sequential model{Input{1}, Dense{1, {.kernel_initializer = Initializer::ones()}}};
  Trainer trainer(replica, model, Adam(0.1F), MeanSquaredError{});

  const FitResult fit = trainer.fit(data.batch(2));

  EXPECT_EQ(trainer.step(), 1);
  EXPECT_EQ(model.parameter_values()[0], 1.0F);
  EXPECT_TRUE(std::isnan(fit.results.at("loss")));
}

TEST(SampleWeights, MayBeOfEachPosition) {
  // Two positions of two numbers each; the second position of the first sample is masked.
  const Tensor x(Shape{2, 2, 2}, {1, 1, 7, 7, 2, 2, 3, 3});
  const Dataset data = from_tensors({{"x", x}}, {{"y", Tensor(Shape{2, 2, 2})}}, Tensor(Shape{2, 2}, {1, 0, 1, 1}));
  Replica replica = Replica::alone();
  const Sequential model{Input{2, 2}, Rescaling{1}};
  Trainer trainer(replica, model, SGD(0.1F), MeanSquaredError{});

  EXPECT_THAT(trainer.evaluate(data.batch(2)).at("loss"), DoubleNear((1.0 + 4 + 9) / 3, 1e-6));
}

TEST(SeveralArrays, ArePredicted) {
  Replica replica = Replica::alone();
  const Arrays a = arrays();
  Model model = two_towers();
  Trainer trainer(replica, model, Adam(0.02F),
                  {SparseCategoricalCrossentropy({.from_logits = true}), {MeanSquaredError{}, 0.5F}});
  trainer.fit(data_of(a, false).batch(8));
  const std::vector<Tensor> inputs = {Tensor(Shape{kSamples, 1}, a.ids), Tensor(Shape{kSamples, 3}, a.numbers)};

  const std::vector<Tensor> by_trainer = trainer.predict(inputs, 8);
  const std::vector<Tensor> by_model = model.predict(inputs, 8);

  ASSERT_EQ(by_trainer.size(), 2U);
  EXPECT_EQ(by_trainer[0].shape(), (Shape{kSamples, 3}));
  EXPECT_EQ(by_trainer[1].shape(), (Shape{kSamples, 1}));
  for (std::size_t output = 0; output < 2; ++output) {
    for (std::size_t i = 0; i < by_model[output].values().size(); ++i) {
      EXPECT_NEAR(by_trainer[output].values()[i], by_model[output].values()[i], 1e-5F);
    }
  }
}

TEST(SeveralArrays, ContinueFromASavepoint) {
  const TemporaryFolder folder;
  const Dataset data = data_of(arrays(), true);
  const auto run = [&](std::int64_t epochs, bool saves) {
    Outcome outcome;
    train_on_threads({.replicas = 2, .run_directory = saves ? folder.path() : ""}, [&](Replica& replica) {
      Trainer trainer(replica, two_towers(), Adam(0.02F),
                      {SparseCategoricalCrossentropy({.from_logits = true}), {MeanSquaredError{}, 0.5F}});
      const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = epochs});
      if (replica.rank() == 0) outcome = {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
    });
    return outcome;
  };

  run(1, true);

  expect_equal(run(3, true), run(3, false));
}

TEST(SeveralArrays, AreCheckedBeforeTheFirstStep) {
  Replica replica = Replica::alone();
  const Arrays a = arrays();
  const Tensor ids(Shape{kSamples, 1}, a.ids);
  const Tensor numbers(Shape{kSamples, 3}, a.numbers);
  const Tensor labels(Shape{kSamples}, a.labels);
  const Tensor values(Shape{kSamples, 1}, a.values);
  Trainer trainer(replica, two_towers(), SGD(0.1F),
                  {SparseCategoricalCrossentropy({.from_logits = true}), MeanSquaredError{}});
  const auto fit = [&](std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets, auto... weights) {
    return sentence_thrown_by([&] { trainer.fit(from_tensors(inputs, targets, weights...).batch(8)); });
  };

  EXPECT_THAT(fit({{"id", ids}}, {{"kind", labels}, {"value", values}}),
              HasSubstr("has 1 inputs, the model takes 2: \"id\" of i32 [1], \"numbers\" of f32 [3]"));
  EXPECT_THAT(fit({{"numbers", numbers}, {"", ids}}, {{"kind", labels}, {"value", values}}),
              HasSubstr("has \"numbers\" as input 0, where the model takes \"id\""));
  EXPECT_THAT(fit({{"id", Tensor(Shape{kSamples, 1}, std::vector<std::int64_t>(kSamples))}, {"numbers", numbers}},
                  {{"kind", labels}, {"value", values}}),
              HasSubstr("has samples of i64 for input \"id\", the model takes i32"));
  EXPECT_THAT(fit({{"id", ids}, {"numbers", numbers}}, {{"kind", labels}}), HasSubstr("has 1 targets"));
  EXPECT_THAT(fit({{"id", ids}, {"numbers", numbers}}, {{"kind", values}, {"value", values}}),
              HasSubstr("for output \"kind\""));
  EXPECT_THAT(
      fit({{"id", ids}, {"numbers", numbers}}, {{"kind", labels}, {"value", values}},
          std::optional(Tensor(Shape{kSamples, 4}))),
      HasSubstr("a model with several outputs takes one weight a sample, 2 (one for each output), or 2 (one for each "
                "position of all outputs, in the order of the targets). For other weights, make them numbers of the "
                "targets"));
}

// They would train by position, each output with the numbers of another.
TEST(SeveralArrays, AreRefusedIfTheirNamesDifferFromTheModels) {
  Replica replica = Replica::alone();
  const Arrays a = arrays();
  const Tensor ids(Shape{kSamples, 1}, a.ids), numbers(Shape{kSamples, 3}, a.numbers);
  const Tensor labels(Shape{kSamples}, a.labels), values(Shape{kSamples, 1}, a.values);
  Trainer trainer(replica, two_towers(), SGD(0.1F),
                  {SparseCategoricalCrossentropy({.from_logits = true}), MeanSquaredError{}});
  const auto fit = [&](std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets) {
    return sentence_thrown_by([&] { trainer.fit(from_tensors(inputs, targets).batch(8)); });
  };

  EXPECT_THAT(
      fit({{"id", ids}, {"numbers", numbers}}, {{"u", labels}, {"v", values}}),
      HasSubstr("has \"u\" as target 0, where the model takes \"kind\", and the model has no array of that name; "
                "give the arrays the names of the model, or none"));
  EXPECT_THAT(fit({{"id", ids}, {"amounts", numbers}}, {{"kind", labels}, {"value", values}}),
              HasSubstr("has \"amounts\" as input 1, where the model takes \"numbers\""));
}

TEST(SeveralArrays, HaveAnyNamesWhereTheModelChoseItsOwn) {
  Replica replica = Replica::alone();
  const Arrays a = arrays();
  const Tensor numbers(Shape{kSamples, 3}, a.numbers), values(Shape{kSamples, 1}, a.values);
  const Value x = input({3}), y = input({3});
  Trainer trainer(replica, Model({x, y}, {Dense{1}(x), Dense{1}(y)}), SGD(0.1F),
                  {MeanSquaredError{}, MeanSquaredError{}});

  trainer.fit(from_tensors({{"left", numbers}, {"right", numbers}}, {{"price", values}, {"rating", values}}).batch(8));

  EXPECT_EQ(trainer.step(), 6);
}

TEST(SeveralOutputs, MayComeFromOneLayer) {
  const Arrays a = arrays();
  const Tensor numbers(Shape{kSamples, 3}, a.numbers), values(Shape{kSamples, 1}, a.values);
  const Value x = input({3}), y = input({3});
  const Dense score{1, {.name = "score"}};
  const auto results_of = [&](const Model& model, const std::string& first, const std::string& second) {
    Replica replica = Replica::alone();
    Trainer trainer(replica, model, SGD(0.1F), {MeanSquaredError{}, MeanSquaredError{}});
    const Dataset data = from_tensors({{"", numbers}, {"", numbers}}, {{first, values}, {second, values}});
    return trainer.fit(data.batch(8)).results;
  };

  const Logs named = results_of(Model({x, y}, {{"first", score(x)}, {"second", score(y)}}), "first", "second");
  const Logs plain = results_of(Model({x, y}, {score(x), score(y)}), "", "");

  EXPECT_TRUE(named.contains("second_loss"));
  EXPECT_TRUE(plain.contains("score_1_loss"));
}

// Samples 16 to 23 are the batch of step 2, and its second half is a shard of its own.
TEST(WrongSamples, AreNamedByTheirPlaceInTheBatch) {
  for (const bool has_weights : {false, true}) {
    Arrays labels = arrays();
    labels.labels[21] = 3;
    Arrays ids = arrays();
    ids.ids[21] = 6;
    const auto error_of = [&](const Arrays& wrong, const auto& call) {
      Replica replica = Replica::alone({.shards = 2});
      Trainer trainer(replica, two_towers(), SGD(0.1F),
                      {SparseCategoricalCrossentropy({.from_logits = true}), {MeanSquaredError{}, 0.5F}});
      return sentence_thrown_by([&] { call(trainer, data_of(wrong, has_weights)); });
    };
    const auto fit = [](Trainer& trainer, const Dataset& data) { trainer.fit(data.batch(8)); };
    const auto evaluate = [](Trainer& trainer, const Dataset& data) { trainer.evaluate(data.batch(8)); };

    EXPECT_THAT(error_of(labels, fit), HasSubstr("sample 5 of 8 in step 2 has the class label 3; the model has 3"));
    EXPECT_THAT(error_of(ids, fit), HasSubstr("sample 5 of 8 in step 2 has the id 6 at position 0"));
    EXPECT_THAT(error_of(labels, evaluate), HasSubstr("sample 5 of 8 of a batch evaluated after step 0 has the class"));
  }
}

TEST(WrongSamples, AreNamedWithTheirPosition) {
  std::vector<float> labels(kSamples * 4);
  labels[21 * 4 + 3] = 2;
  const Dataset data = from_tensors(Tensor(Shape{kSamples, 4, 3}), Tensor(Shape{kSamples, 4}, labels));
  for (const bool has_weights : {false, true}) {
    Replica replica = Replica::alone({.shards = 2});
    Trainer trainer(replica, Sequential{Input{4, 3}, Dense{2}}, SGD(0.1F),
                    SparseCategoricalCrossentropy({.from_logits = true}));
    const Dataset weighted =
        from_tensors({{"x", Tensor(Shape{kSamples, 4, 3})}}, {{"y", Tensor(Shape{kSamples, 4}, labels)}},
                     Tensor(Shape{kSamples}, std::vector<float>(kSamples, 1)));

    EXPECT_THAT(sentence_thrown_by([&] { trainer.fit((has_weights ? weighted : data).batch(8)); }),
                HasSubstr("sample 5 of 8 in step 2 at position 3 has the class label 2"));
  }
}

// A file of 45 rows whose column "kind" has one of three values, and in row 21, which is line 23, a fourth.
class RowsOfKinds {
 public:
  RowsOfKinds() : path_(folder_ / "kinds.csv") {
    std::ofstream file(path_);
    file << "number,kind\n";
    for (int row = 0; row < kSamples; ++row) file << row << ',' << (row == 21 ? 'z' : "abc"[row % 3]) << '\n';
  }

  Dataset classes() const { return data({.targets = {"kind"}}); }
  Dataset ids() const { return data({.targets = {"number"}, .ids = {"kind"}}); }
  // Where the wrong row is.
  std::string place() const { return fmt::format("sample 21 (\"{}\", line 23) of the data set: sample ", path_); }

 private:
  Dataset data(const TableEncoderOptions& options) const {
    const Table table = read_csv(path_);
    return TableEncoder::fit(table, options).dataset(table).shuffle();
  }

  const TemporaryFolder folder_;
  const std::string path_;
};

using Call = std::function<void(Trainer&, const Dataset&)>;

TEST(WrongSamples, AreNamedByTheirRowOfTheFileWhateverTheirBatch) {
  const RowsOfKinds rows;
  const auto of_label = [&](const std::string& batch) {
    return AllOf(StartsWith(rows.place()),
                 EndsWith(batch + " has the class label 3; the model has 3 classes, so labels are the whole numbers 0 "
                                  "to 2"));
  };
  const auto sentence_of = [&](const Call& call) {
    Replica replica = Replica::alone({.shards = 4});
    Trainer trainer(replica, Sequential{Input{1}, Dense{3}}, SGD(0.0F),
                    SparseCategoricalCrossentropy({.from_logits = true}), {SparseCategoricalAccuracy{}});
    return sentence_thrown_by([&] { call(trainer, rows.classes()); });
  };

  for (const std::int64_t batch : {1, 4, 45}) {
    const auto fit = [&](Trainer& trainer, const Dataset& data) { trainer.fit(data.batch(batch)); };
    const auto evaluate = [&](Trainer& trainer, const Dataset& data) { trainer.evaluate(data.batch(batch)); };
    EXPECT_THAT(sentence_of(fit), AllOf(of_label(""), HasSubstr(" in step ")));
    EXPECT_THAT(sentence_of(evaluate), of_label(" of a batch evaluated after step 0"));
  }
  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) { trainer.fit(data.batch(3), {.accumulate = 2}); }),
              of_label(""));
  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) {
                trainer.fit(data.batch(5, {.pad_remainder = true}), {.epochs = 9, .steps_per_epoch = 2});
              }),
              of_label(""));
  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) {
                trainer.fit(data.batch(9), {.check_gradients = {.every = 1, .shards = 1}});
              }),
              of_label(""));
  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) {
                for (const TrainingStep& step : trainer.steps(data.batch(8))) EXPECT_GE(step.context.step(), 0);
              }),
              of_label(""));
  EXPECT_THAT(
      sentence_of([](Trainer& trainer, const Dataset& data) {
        trainer.fit(from_tensors(Tensor(Shape{4, 1}), Tensor(Shape{4})).batch(4), {.validation = data.batch(8)});
      }),
      of_label(" of 8 of a batch evaluated after step 1"));
}

TEST(WrongSamples, AreNamedByTheirRowOfTheFileInAPrediction) {
  const RowsOfKinds rows;
  const Value kind = input({1}, {.dtype = DType::i32});
  // One row too few.
  const Model model({kind}, {Dense{1}(Flatten{}(Embedding{3, 2}(kind)))});
  const auto sentence_of = [&](const Call& call) {
    Replica replica = Replica::alone();
    Trainer trainer(replica, model, SGD(0.1F), MeanSquaredError{});
    return sentence_thrown_by([&] { call(trainer, rows.ids().batch(8)); });
  };
  const std::string problem =
      " has the id 3 at position 0, which is not in [0, 3), the rows of its table; make the "
      "table larger or map such ids to one that it has";

  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) { trainer.predict(data); }),
              AllOf(StartsWith(rows.place()), EndsWith(" of 8 predicted after step 0" + problem)));
  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) {
                trainer.predict(data, [](std::int64_t, const std::vector<Tensor>&) {});
              }),
              AllOf(StartsWith(rows.place()), EndsWith(" of 8 predicted after step 0" + problem)));
  EXPECT_THAT(sentence_of([](Trainer& trainer, const Dataset& data) { trainer.fit(data); }),
              AllOf(StartsWith(rows.place()), EndsWith(problem)));
}

TEST(SeveralOutputs, NeedALossEach) {
  Replica replica = Replica::alone();

  EXPECT_THAT(sentence_thrown_by([&] { Trainer(replica, two_towers(), SGD(0.1F), MeanSquaredError{}); }),
              HasSubstr("the model has 2 outputs and was given 1 losses"));
  EXPECT_THAT(sentence_thrown_by([&] {
                Trainer(replica, two_towers(), SGD(0.1F),
                        {SparseCategoricalCrossentropy({.from_logits = true}), MeanSquaredError{}},
                        {{MeanAbsoluteError{}, "price"}});
              }),
              HasSubstr("but the outputs of the model are \"kind\", \"value\""));
}

// Labels of any integer type are those of floats.
TEST(TypedTargets, GiveTheBitsOfFloats) {
  const Arrays a = arrays();
  const Tensor x(Shape{kSamples, 3}, a.numbers);
  const auto digest_of = [&](Tensor labels) {
    Replica replica = Replica::alone();
    const Sequential model{Input{3}, Dense{3}};
    Trainer trainer(replica, model, Adam(0.02F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(from_tensors(x, std::move(labels)).batch(8));
    return trainer.weights_digest().hex();
  };
  const std::string expected = digest_of(Tensor(Shape{kSamples}, std::vector<float>(a.labels.begin(), a.labels.end())));

  EXPECT_EQ(digest_of(Tensor(Shape{kSamples}, a.labels)), expected);
  EXPECT_EQ(digest_of(Tensor(Shape{kSamples}, std::vector<std::int64_t>(a.labels.begin(), a.labels.end()))), expected);
}

}  // namespace
}  // namespace holdfast
