// Steps whose gradients are computed twice: what is found, what is done again, and that nothing else changes.

#include "train/step/checked_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/holdfast.h"
#include "support/program.h"
#include "support/thread_replica.h"
#include "train/step/model_trainable.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr int kEverySample = -1;
constexpr int kEveryTime = 1'000'000;

enum class Target { gradients, batch_statistics, sums };

// What one rank gets wrong.
struct Slip {
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t first_sample = kEverySample;  // of the shard
  int times = 1;
  Target target = Target::gradients;
  bool is_nan = false;
};

// Batch statistics make a shard write more than gradients, and dropout makes it depend on more than samples.
ModelTrainable small_trainable() {
  return {Sequential{Input{4}, Dense{5}, BatchNormalization{}, Dropout{0.25F}, Dense{1}},
          Adam(0.01F),
          {MeanSquaredError{}},
          {}};
}

// Computes as the model does, except for the slips.
class Slipping final : public Trainable {
 public:
  Slipping(int rank, std::vector<Slip> slips) : rank_(rank), slips_(std::move(slips)) {}

  std::string graph() const override { return model_.graph(); }
  std::string configuration() const override { return model_.configuration(); }
  std::string arithmetic() const override { return model_.arithmetic(); }
  Shape feature_shape() const override { return model_.feature_shape(); }
  Shape target_shape() const override { return model_.target_shape(); }
  Shape output_shape() const override { return model_.output_shape(); }
  void prepare(const Workers& workers) override { model_.prepare(workers); }
  void initialize(std::uint64_t seed) override { model_.initialize(seed); }
  std::vector<StateSpan> state() override { return model_.state(); }
  std::vector<std::string> sum_names() const override { return model_.sum_names(); }
  std::size_t gradient_count() const override { return model_.gradient_count(); }
  void compute_sums(const ShardBatch& batch, std::span<float> sums) override { model_.compute_sums(batch, sums); }
  void predict(const ShardBatch& batch, std::span<float> outputs) override { model_.predict(batch, outputs); }
  void apply_update(const Update& update) override { model_.apply_update(update); }

  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override {
    model_.compute_gradients(batch, sink, sums);
    const std::lock_guard lock(mutex_);
    for (Slip& slip : slips_) {
      const bool is_here = slip.first_sample == kEverySample || slip.first_sample == batch.first_sample;
      if (slip.rank != rank_ || slip.step != batch.step || !is_here || slip.times == 0) continue;
      --slip.times;
      float& value = number(slip.target, sink, sums);
      value = slip.is_nan ? std::numeric_limits<float>::quiet_NaN() : std::nextafter(value, 1e6F) + ++slips_made_;
    }
  }

 private:
  // Statistics follow the gradients.
  static float& number(Target target, GradientSink& sink, std::span<float> sums) {
    if (target == Target::sums) return sums.front();
    return target == Target::gradients ? sink.gradients().front() : sink.gradients().back();
  }

  ModelTrainable model_ = small_trainable();
  const int rank_;
  std::mutex mutex_;
  std::vector<Slip> slips_;  // guarded by mutex_
  float slips_made_ = 0;     // guarded by mutex_; no two slips are alike
};

// Reads the journal, and asks for a stop or a savepoint while a step is computed.
class StepJournal final : public NoSupervision {
 public:
  explicit StepJournal(std::int64_t stop_in = -1, std::int64_t savepoint_in = -1)
      : stop_in_(stop_in), savepoint_in_(savepoint_in) {}

  void enter(TrainingPhase phase, std::int64_t step) override {
    if (phase != TrainingPhase::computing) return;
    if (step == stop_in_) is_stop_requested_ = true;
    if (step == savepoint_in_) is_savepoint_requested_ = true;
  }
  StepRequests requests() const override { return {.stop = is_stop_requested_, .savepoint = is_savepoint_requested_}; }
  int begin_requested_savepoint() override {
    is_savepoint_requested_ = false;
    return 1;
  }
  void count_samples(std::int64_t samples) override { samples_ += samples; }
  void report_event(const std::string& event, const std::string& detail) override {
    if (event != "wrong_gradient") return;
    const std::lock_guard lock(mutex_);
    wrong_.push_back(Json::parse(detail));
  }

  std::vector<Json> wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }
  std::int64_t samples() const { return samples_; }

 private:
  const std::int64_t stop_in_;
  const std::int64_t savepoint_in_;
  std::atomic<bool> is_stop_requested_ = false;
  std::atomic<bool> is_savepoint_requested_ = false;
  std::atomic<std::int64_t> samples_ = 0;
  mutable std::mutex mutex_;
  std::vector<Json> wrong_;  // guarded by mutex_
};

// 12 steps; the last batch of an epoch is short.
constexpr std::int64_t kSamplesOfTwelveSteps = 53;
constexpr std::int64_t kBatch = 10;
constexpr std::int64_t kEpochs = 2;

Dataset steps_data() {
  Tensor features(Shape{kSamplesOfTwelveSteps, 4});
  Tensor targets(Shape{kSamplesOfTwelveSteps, 1});
  for (std::int64_t i = 0; i < kSamplesOfTwelveSteps; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (float& value : features.sample(i)) value = random.normal();
    targets.sample(i)[0] = random.normal();
  }
  return from_tensors(std::move(features), std::move(targets));
}

void add_noise(Sample sample, Random& random) {
  for (float& value : sample.features) value += 0.1F * random.normal();
}

struct CheckedRun {
  int replicas = 2;
  int workers = 1;
  int shards = 4;
  GradientChecks checks{.every = 1, .shards = 0};
  std::vector<Slip> slips{};
  WhenNotFinite when_not_finite = WhenNotFinite::stop;
  Dataset::MapFunction map = add_noise;
  std::shared_ptr<StepJournal> journal = std::make_shared<StepJournal>();
  std::string run_directory{};
};

// The digest of rank 0's weights at the end.
std::string train(const CheckedRun& run) {
  std::string weights;
  const ThreadRun threads{.replicas = run.replicas,
                          .shards = run.shards,
                          .workers = run.workers,
                          .run_directory = run.run_directory,
                          .supervision = run.journal};
  train_on_threads(threads, [&](Replica& replica) {
    Slipping model(replica.rank(), run.slips);
    Trainer trainer(replica, model);
    trainer.fit(steps_data().map(run.map).shuffle().batch(kBatch).prefetch(2),
                {.epochs = kEpochs, .when_not_finite = run.when_not_finite, .check_gradients = run.checks});
    if (replica.is_primary()) weights = trainer.weights_digest().hex();
  });
  return weights;
}

const std::string& undisturbed() {
  static const std::string weights = train({.replicas = 1, .checks = {.every = 0}});
  return weights;
}

// The error with which a run ends.
std::string end_of(const CheckedRun& run) {
  try {
    train(run);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "training went on";
  return "";
}

}  // namespace

TEST(CheckedSteps, ChangeNoBit) {
  for (const int replicas : {1, 2, 3, 4}) {
    for (const GradientChecks checks : {GradientChecks{.every = 1, .shards = 0}, GradientChecks{.every = 1},
                                        GradientChecks{.every = 3, .shards = 2}, GradientChecks{}}) {
      SCOPED_TRACE(std::to_string(replicas) + " replicas, every " + std::to_string(checks.every) + " steps " +
                   std::to_string(checks.shards));
      const auto journal = std::make_shared<StepJournal>();

      EXPECT_EQ(train({.replicas = replicas, .checks = checks, .journal = journal}), undisturbed());

      EXPECT_TRUE(journal->wrong().empty());
      EXPECT_EQ(journal->samples(), kEpochs * kSamplesOfTwelveSteps);
    }
  }
}

TEST(CheckedSteps, ChangeNoBitIfSeveralShardsAreComputedAtOnce) {
  EXPECT_EQ(train({.replicas = 1, .workers = 3}), undisturbed());
  EXPECT_EQ(train({.replicas = 2, .workers = 2}), undisturbed());
}

// One rank has fewer samples than shards, and one has no samples.
TEST(CheckedSteps, AgreeAboutShardsWithoutSamples) {
  EXPECT_EQ(train({.replicas = 3, .shards = 16}), train({.replicas = 1, .shards = 16, .checks = {.every = 0}}));
}

// Whether it was wrong in its own shards or in those of another rank.
TEST(CheckedSteps, NameTheRankThatWasWrong) {
  for (const int replicas : {2, 3}) {
    for (const int rank : {0, replicas - 1}) {
      for (const int owner : {rank, rank_before(rank, 1, replicas)}) {
        SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(replicas) + " at shards of " +
                     std::to_string(owner));
        const auto journal = std::make_shared<StepJournal>();
        const int shard = ShardAssignment::even(4, replicas).of(owner).begin;

        const std::string end = end_of({.replicas = replicas,
                                        .slips = {{.rank = rank, .step = 4, .first_sample = shard * kBatch / 4}},
                                        .journal = journal});

        EXPECT_THAT(end, HasSubstr("computed gradients of step 4 wrongly"));
        ASSERT_EQ(journal->wrong().size(), 1U);
        EXPECT_EQ(journal->wrong()[0].at("step"), 4);
        EXPECT_EQ(journal->wrong()[0].at("rank"), rank);
        EXPECT_EQ(journal->wrong()[0].at("owner"), owner);
        EXPECT_EQ(journal->wrong()[0].at("shards")[0], shard);
        EXPECT_NE(journal->wrong()[0].at("digest"), journal->wrong()[0].at("right"));
      }
    }
  }
}

TEST(CheckedSteps, FindWrongStatisticsSumsAndNaN) {
  for (const Slip& slip :
       {Slip{.rank = 1, .step = 3, .target = Target::batch_statistics},
        Slip{.rank = 1, .step = 3, .target = Target::sums}, Slip{.rank = 1, .step = 3, .is_nan = true}}) {
    EXPECT_THAT(end_of({.slips = {slip}}), HasSubstr("computed gradients of step 3 wrongly"));
  }
}

// No other rank has the state then, so no rank leaves.
TEST(CheckedSteps, AreComputedAgainAndAppliedOnceIfAllWereWrong) {
  for (const int replicas : {1, 2, 3}) {
    for (const std::int64_t step : {0, 5, 11}) {
      SCOPED_TRACE(std::to_string(replicas) + " replicas, step " + std::to_string(step));
      const auto journal = std::make_shared<StepJournal>();
      std::vector<Slip> slips;
      for (int rank = 0; rank < replicas; ++rank) slips.push_back({.rank = rank, .step = step});

      EXPECT_EQ(train({.replicas = replicas, .slips = slips, .journal = journal}), undisturbed());

      EXPECT_EQ(journal->wrong().size(), static_cast<std::size_t>(replicas));
      EXPECT_EQ(journal->samples(), kEpochs * kSamplesOfTwelveSteps);
    }
  }
}

TEST(CheckedSteps, ComputeAgainWhatWasNaNOnce) {
  EXPECT_EQ(train({.replicas = 1, .slips = {{.step = 3, .is_nan = true}}, .when_not_finite = WhenNotFinite::skip_step}),
            undisturbed());
}

TEST(CheckedSteps, SkipAStepIfAllAgreeThatItIsNaN) {
  std::vector<Slip> slips;
  for (const int rank : {0, 1}) slips.push_back({.rank = rank, .step = 3, .times = kEveryTime, .is_nan = true});
  const auto journal = std::make_shared<StepJournal>();

  train({.slips = slips, .when_not_finite = WhenNotFinite::skip_step, .journal = journal});

  EXPECT_TRUE(journal->wrong().empty());
  EXPECT_EQ(journal->samples(), kEpochs * kSamplesOfTwelveSteps - kBatch);
}

TEST(CheckedSteps, LoseNoRequestToStop) {
  const TemporaryFolder folder;
  const auto journal = std::make_shared<StepJournal>(4);

  EXPECT_THROW(train({.slips = {{.rank = 0, .step = 4}, {.rank = 1, .step = 4}},
                      .journal = journal,
                      .run_directory = folder.path()}),
               StopRequested);

  EXPECT_EQ(format::list_savepoints(posix_file_system(), folder.path()).back().name, "savepoint-0000000005.h5");
  EXPECT_EQ(train({.run_directory = folder.path()}), undisturbed());
}

TEST(CheckedSteps, LoseNoRequestForASavepoint) {
  const TemporaryFolder folder;
  const auto journal = std::make_shared<StepJournal>(-1, 4);

  EXPECT_EQ(train({.slips = {{.rank = 0, .step = 4}, {.rank = 1, .step = 4}},
                   .journal = journal,
                   .run_directory = folder.path()}),
            undisturbed());

  EXPECT_EQ(format::list_savepoints(posix_file_system(), folder.path()).front().name, "savepoint-0000000005.h5");
}

TEST(CheckedSteps, EndTheRunIfTwoRanksDisagreeAgain) {
  const auto journal = std::make_shared<StepJournal>();

  const std::string end = end_of({.slips = {{.rank = 1, .step = 4, .times = kEveryTime}}, .journal = journal});

  EXPECT_THAT(end, HasSubstr("the gradients of step 4 (epoch 0, batch 4) differ"));
  EXPECT_TRUE(journal->wrong().empty());
}

TEST(CheckedSteps, NameTheOneOfThreeThatIsWrongAgain) {
  for (const int rank : {0, 1, 2}) {
    const auto journal = std::make_shared<StepJournal>();

    const std::string end =
        end_of({.replicas = 3, .slips = {{.rank = rank, .step = 4, .times = kEveryTime}}, .journal = journal});

    EXPECT_THAT(end, HasSubstr("computed gradients of step 4 wrongly"));
    ASSERT_FALSE(journal->wrong().empty());
    for (const Json& wrong : journal->wrong()) EXPECT_EQ(wrong.at("rank"), rank);
  }
}

// The limit of sampling: the slip is in the shard that was not drawn.
TEST(CheckedSteps, DoNotSeeWhatWasNotDrawn) {
  const int drawn = drawn_shards(3, 4, ShardAssignment::even(4, 2).of(1), 1).at(0);
  const std::int64_t other = (drawn == 2 ? 3 : 2) * kBatch / 4;
  const auto journal = std::make_shared<StepJournal>();

  EXPECT_NE(train({.checks = {.every = 1, .shards = 1},
                   .slips = {{.rank = 1, .step = 4, .first_sample = other}},
                   .journal = journal}),
            undisturbed());

  EXPECT_TRUE(journal->wrong().empty());
}

TEST(CheckedSteps, ReadSamplesAgainThatMayBeWrong) {
  const auto reads = std::make_shared<std::atomic<int>>(0);
  const auto map = [reads](Sample sample, Random& random) {
    add_noise(sample, random);
    // Only the first sample that is read.
    if (reads->fetch_add(1) == 0) sample.features[0] += 1;
  };

  EXPECT_EQ(train({.replicas = 1, .map = map}), undisturbed());
}

TEST(CheckedSteps, SayWhatMayBeWrongIfSamplesDifferEachTime) {
  const auto reads = std::make_shared<std::atomic<int>>(0);
  const auto map = [reads](Sample sample, Random&) { sample.features[0] = static_cast<float>(reads->fetch_add(1)); };

  EXPECT_THAT(end_of({.map = map}), HasSubstr("a map() of the data is not a function"));
}

TEST(CheckedSteps, RefuseNegativeNumbers) {
  for (const GradientChecks checks : {GradientChecks{.every = -1}, GradientChecks{.shards = -1}}) {
    try {
      train({.replicas = 1, .checks = checks});
      FAIL() << "took a negative number";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace holdfast
