// The code that pages of the guide name within their text. The house test `Guide` wants it here, word for word, or in
// an example. Blocks of code on these pages are parts of the examples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/data/source.h"
#include "holdfast/data/tokens.h"
#include "holdfast/format/exchange/convert_file.h"
#include "holdfast/holdfast.h"
#include "holdfast/recovery/fault_plan.h"
#include "support/thrown.h"
#include "unit/data/support/array_writer.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// 40 points of a line.
Table points() {
  std::vector<double> x, y;
  for (int i = 0; i < 40; ++i) {
    x.push_back(i);
    y.push_back(2 * i + 1);
  }
  return Table({{"x", x}, {"y", y}});
}

}  // namespace

TEST(GuideCode, TrainsOnData) {
  constexpr int n = 4, k = 2;
  const Table table = points();
  const TableEncoder encoder = TableEncoder::fit(table, {.targets = {"y"}});
  const auto function = [](const SampleArrays& sample, Random&) { sample.inputs.elements<float>(0)[0] += 1; };
  Replica replica = Replica::alone();
  Trainer trainer(replica, Sequential{Input{1}, Dense{1}}, Adam{{.learning_rate = 1e-3F, .global_clip_norm = 1}},
                  MeanSquaredError{});
  trainer.attach("columns", encoder.text());
  const Dataset data = encoder.dataset(table).map(function, "name").skip_bad({.at_most = 20});
  const auto [training, validation] = data.split(0.1);

  trainer.fit(training.take(32).shuffle().batch(n).prefetch(k, {.threads = n}), {.accumulate = 8});
  const Logs results = trainer.evaluate(validation.batch(4).prefetch(2, {.threads = 8}));

  EXPECT_EQ(trainer.step(), 1);
  EXPECT_TRUE(results.contains("loss"));
}

TEST(GuideCode, DescribesModels) {
  const Model model = small_model();

  EXPECT_THAT(model.summary(32), HasSubstr("32"));
}

TEST(GuideCode, MakesProfiles) {
  const TensorBoard board = TensorBoard{{.profile_steps = {10, 12}}};

  EXPECT_TRUE(board.state().empty());
}

TEST(GuideCode, MakesLosses) {
  const SparseCategoricalCrossentropy loss{{.from_logits = true, .positions_at_once = 512}};

  EXPECT_THAT(loss.configuration(), HasSubstr("512"));
}

TEST(GuideCode, GivesNestedModelsTheirWeights) {
  Replica replica = Replica::alone();
  const Model base = Sequential{Input{2}, Dense{3}};
  Trainer trainer(replica, base, SGD(0.1F), MeanSquaredError{});
  trainer.fit(from_tensors(Tensor(Shape{4, 2}), Tensor(Shape{4, 3})).batch(4));
  const Value x = input({2});
  Model model({x}, {Dense{1}(base.call({x}, "base").at(0))});

  model.take_weights(base, "base");

  EXPECT_TRUE(model.has_weights());
}

TEST(GuideCode, ReadsFiles) {
  const auto code_of = [](const auto& read) { return code_thrown_by(read); };

  EXPECT_EQ(code_of([] { load_model("model.h5"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([] { load_model("best.keras"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([] { open_raw_tokens("train.bin", {.dtype = DType::u16}); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([] { open_tokens({.path = "train.npy"}); }), ErrorCode::not_found);
}

TEST(GuideCode, BeginsWithPublishedWeights) {
  const WorkInTemporaryFolder here;
  Replica replica = Replica::alone();
  const Model small = gpt2({.vocabulary = 7, .positions = 8, .width = 12, .layers = 2, .heads = 3});
  Trainer trainer(replica, small, AdamW{1e-5F}, SparseCategoricalCrossentropy{{.from_logits = true}});
  const Digest drawn = trainer.weights_digest();

  trainer.save("like.h5");
  // In place of a file from elsewhere.
  format::convert_file(posix_file_system(), "like.h5", "model.safetensors", {.to = format::ConvertTarget::gpt2});
  format::convert_file(posix_file_system(), "model.safetensors", "weights.h5", {.like = "like.h5"});
  trainer.load_weights("weights.h5");

  EXPECT_EQ(trainer.weights_digest(), drawn);
}

TEST(GuideCode, InjectsAFault) {
  const std::vector<recovery::Fault> faults = recovery::parse_fault_plan("rank=1,step=120,fault=kill", 2);

  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().kind, recovery::FaultKind::kill);
}

}  // namespace holdfast
