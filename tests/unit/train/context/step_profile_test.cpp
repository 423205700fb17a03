// Spans end where the next ones begin, lie within those around them, and change nothing of the training.

#include "train/context/step_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/holdfast.h"
#include "support/thread_replica.h"

namespace holdfast {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;

std::vector<std::string> names_on(const std::vector<ProfileSpan>& spans, int line) {
  std::vector<std::string> names;
  for (const ProfileSpan& span : spans) {
    if (span.line == line) names.push_back(span.what);
  }
  return names;
}

std::chrono::nanoseconds end_of(const ProfileSpan& span) {
  return span.begin + span.duration;
}

// Records from the second step on.
class Recorder final : public Callback {
 public:
  Recorder(std::vector<ProfileSpan>& spans, bool records) : spans_(spans), records_(records) {}

  std::string name() const override { return "recorder"; }
  void on_step_begin(TrainingContext& context) override {
    if (records_ && context.step() == 1) context.begin_profile();
  }
  void on_fit_end(TrainingContext& context, const Logs&) override { spans_ = context.end_profile(); }

 private:
  std::vector<ProfileSpan>& spans_;
  const bool records_;
};

// What was recorded of a network that was trained for three steps, and its weights.
struct Recorded {
  std::vector<ProfileSpan> spans{};
  std::string weights{};
};

Recorded train_recorded(const Model& model, bool records, int workers) {
  Recorded recorded;
  train_on_threads({.shards = 2, .workers = workers}, [&](Replica& replica) {
    Trainer trainer{replica, model, Adam{0.01F}, MeanSquaredError{}};
    Tensor features(Shape{12, 4});
    for (std::size_t i = 0; i < features.values().size(); ++i) features.values()[i] = 0.1F * static_cast<float>(i % 7);
    trainer.fit(from_tensors(features, Tensor(Shape{12, 2})).batch(4),
                {.callbacks = {Recorder(recorded.spans, records)}});
    recorded.weights = trainer.weights_digest().hex();
  });
  return recorded;
}

}  // namespace

TEST(StepProfile, RecordsNothingUntilItBegins) {
  StepProfile profile;
  profile.enter(StepProfile::kFit, "update");
  profile.open(1, "shard 0");
  profile.close(1);

  EXPECT_FALSE(profile.is_on());
  EXPECT_TRUE(profile.end().empty());
}

TEST(StepProfile, EndsASpanWhereTheNextOneOfTheLineBegins) {
  StepProfile profile;
  profile.begin(1);
  profile.enter(StepProfile::kFit, "reading_data");
  profile.enter(StepProfile::kFit, "update");

  const std::vector<ProfileSpan> spans = profile.end();

  EXPECT_THAT(names_on(spans, StepProfile::kFit), ElementsAre("reading_data", "update"));
  EXPECT_LE(end_of(spans[0]), spans[1].begin);
  EXPECT_FALSE(profile.is_on());
}

TEST(StepProfile, HasPartsWithinWhatIsAroundThem) {
  StepProfile profile;
  profile.begin(2);
  std::thread other([&] {
    profile.open(2, "shard 1");
    profile.enter(2, "relu");
    profile.close(2);
  });
  profile.open(1, "shard 0");
  profile.enter(1, "dense");
  profile.enter(1, "loss");
  profile.close(1);
  other.join();
  profile.enter(3, "a worker that came later");

  const std::vector<ProfileSpan> spans = profile.end();

  EXPECT_THAT(names_on(spans, 1), ElementsAre("shard 0", "dense", "loss"));
  EXPECT_THAT(names_on(spans, 2), ElementsAre("shard 1", "relu"));
  EXPECT_TRUE(names_on(spans, 3).empty());
  for (const std::size_t part : {1U, 2U}) {
    EXPECT_GE(spans[part].begin, spans[0].begin);
    EXPECT_LE(end_of(spans[part]), end_of(spans[0]));
  }
}

TEST(StepProfile, EndsSpansThatAreOpen) {
  StepProfile profile;
  profile.begin(1);
  profile.open(1, "shard 0");
  profile.enter(1, "dense");

  const std::vector<ProfileSpan> spans = profile.end();

  ASSERT_EQ(spans.size(), 2U);
  EXPECT_LE(end_of(spans[1]), end_of(spans[0]));
}

TEST(StepProfile, NamesPhasesOfStepsAndOperationsOfShards) {
  const Sequential model{Input{4}, Dense{8, {.activation = Activation::relu}}, Dense{2}};

  const Recorded recorded = train_recorded(model, true, 1);

  const std::vector<std::string> phases = names_on(recorded.spans, StepProfile::kFit);
  EXPECT_EQ(phases.front(), "callbacks");
  EXPECT_THAT(phases, IsSupersetOf({"reading_data", "forward_and_backward", "sum_over_ranks", "agree", "update",
                                    "forward_and_backward", "update"}));
  EXPECT_EQ(std::ranges::count(phases, "update"), 2);
  const std::vector<std::string> parts = names_on(recorded.spans, StepProfile::line_of_worker(0));
  EXPECT_EQ(std::ranges::count(parts, "shard 0"), 2);
  EXPECT_EQ(std::ranges::count(parts, "shard 1"), 2);
  EXPECT_EQ(std::ranges::count(parts, "loss"), 4);
  EXPECT_THAT(parts, Contains(testing::StartsWith("dense: ")));
  EXPECT_THAT(parts, Contains(testing::StartsWith("dense_1: ")));
  for (const ProfileSpan& span : recorded.spans) EXPECT_GE(span.duration.count(), 0) << span.what;
}

TEST(StepProfile, ChangesNoBit) {
  // A model that was trained begins with its weights.
  const auto model = [] { return Sequential{Input{4}, Dense{8, {.activation = Activation::tanh}}, Dense{2}}; };

  const Recorded recorded = train_recorded(model(), true, 2);

  EXPECT_FALSE(recorded.spans.empty());
  EXPECT_EQ(recorded.weights, train_recorded(model(), false, 2).weights);
}

}  // namespace holdfast
