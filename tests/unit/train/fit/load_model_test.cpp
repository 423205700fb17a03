#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/small_training.h"

namespace holdfast {

TEST(Trainer, LoadsTheBaseModelAndItsOutputs) {
  const TemporaryFolder folder;
  Tensor expected;
  train_on_threads({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data().batch(10), {.callbacks = {ModelCheckpoint()}});
    if (replica.is_primary()) expected = trainer.predict(Tensor(Shape{2, 6, 6, 1}, std::vector<float>(72, 0.5F)));
  });

  const Sequential model = load_model(folder / savepoint_files(folder.path()).back());
  const Tensor outputs = model.predict(Tensor(Shape{2, 6, 6, 1}, std::vector<float>(72, 0.5F)));

  ASSERT_EQ(outputs.shape(), expected.shape());
  EXPECT_TRUE(std::equal(outputs.values().begin(), outputs.values().end(), expected.values().begin()));
}

TEST(Trainer, GivesTheTrainedWeightsToTheModel) {
  const Sequential model = small_model();
  Replica replica = Replica::alone();
  Trainer trainer(replica, model, SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  trainer.fit(small_data().batch(10));

  EXPECT_EQ(model.parameters().digest(model.parameter_values()), trainer.weights_digest());
}

TEST(Trainer, StartsFromTheWeightsOfAGivenModel) {
  const TemporaryFolder folder;
  outcome_of({.run_directory = folder.path()}, checkpoint);
  const Sequential model = load_model(folder / savepoint_files(folder.path()).back());

  Replica replica = Replica::alone({.seed = 77});
  Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_EQ(trainer.weights_digest(), model.parameters().digest(model.parameter_values()));
}

// What `holdfast convert` makes of a Keras model with one Dense layer of two weights.
static void write_converted(const std::string& path, const nlohmann::json& graph) {
  const std::vector<float> kernel = {2, 3};
  const std::int64_t iteration = 7;
  const nlohmann::json metadata = {{"kind", "keras"}, {"keras", nlohmann::json::object()}, {"graph", graph}};
  const std::vector<format::ArrayView> arrays = {
      {"model/dense/kernel", DType::f32, {2, 1}, std::as_bytes(std::span(kernel))},
      {"optimizer/iteration", DType::i64, {}, std::as_bytes(std::span(&iteration, 1))}};
  format::write_array_file(posix_file_system(), path, metadata.dump(), arrays);
}

TEST(LoadModel, ReadsAConvertedKerasModel) {
  const TemporaryFolder folder;
  const Sequential described{Input{2}, Dense{1, {.use_bias = false}}};
  write_converted(folder / "a.h5", nlohmann::json::parse(described.graph()));

  const Model model = load_model(folder / "a.h5");

  EXPECT_EQ(model.graph(), described.graph());
  EXPECT_EQ(model.predict(Tensor(Shape{1, 2}, {10, 100})).values()[0], 320);
}

TEST(LoadModel, RefusesAConvertedFileWhoseArraysDoNotFitItsModel) {
  const TemporaryFolder folder;
  const Sequential described{Input{3}, Dense{1, {.use_bias = false}}};
  write_converted(folder / "a.h5", nlohmann::json::parse(described.graph()));
  write_converted(folder / "b.h5", nullptr);

  for (const char* name : {"a.h5", "b.h5"}) {
    try {
      load_model(folder / name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_file) << name;
      const std::string sentence = error.what();
      EXPECT_EQ(sentence.find("--like"), std::string::npos) << "no savepoint helps here: " << sentence;
      EXPECT_EQ(sentence.find("holdfast convert") != std::string::npos, name == std::string("b.h5")) << sentence;
    }
  }
}

}  // namespace holdfast
