// Comparisons of states that are cut off by the death of the other rank, and states that are not finite. Faults in
// processes cannot be timed so finely, nor their errors caught, so the ranks are threads here.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "support/comes_true.h"
#include "support/program.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

constexpr std::int64_t kStep = 8;  // after this step a bit is flipped, or the comparison is cut off
struct Died {};

// Flips a bit of a weight after an update, once, and reads the journal.
class Flipping final : public NoSupervision {
 public:
  explicit Flipping(bool is_to_flip) : is_to_flip_(is_to_flip) {}

  void enter(TrainingPhase, std::int64_t step) override { step_ = step; }
  void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) override {
    if (point != FaultPoint::after_update || step < kStep || !std::exchange(is_to_flip_, false)) return;
    float& weight = floats(FaultTarget::weight).front().front();
    weight = weight == 0 ? 1 : -weight;
  }
  void report_event(const std::string& event, const std::string& detail) override {
    const std::lock_guard lock(mutex_);
    if (event == "rolled_back") roll_backs_.push_back(detail);
  }

  std::int64_t step() const { return step_; }
  std::vector<std::string> roll_backs() const {
    const std::lock_guard lock(mutex_);
    return roll_backs_;
  }

 private:
  bool is_to_flip_;
  std::atomic<std::int64_t> step_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> roll_backs_;  // guarded by mutex_
};

// Ends the generation once, instead of the comparison of states, when this rank already knows all of them.
class CutOff final : public Communicator {
 public:
  using End = std::function<void(bool are_equal)>;
  CutOff(std::unique_ptr<Communicator> inner, End end) : inner_(std::move(inner)), end_(std::move(end)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::vector<Slot> slots() override { return inner_->slots(); }
  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override {
    return inner_->reduce(covering_slots, range, deadline);
  }
  bool was_finite() const override { return inner_->was_finite(); }
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override {
    inner_->broadcast(parts, root, takes, deadline);
  }
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override {
    inner_->broadcast_arrays(arrays, root, takes, deadline);
  }
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override {
    inner_->gather_all(own, all, deadline);
    if (own.size() != sizeof(Digest)) return;
    const auto half = all.size() / 2;
    end_(std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(half),
                    all.begin() + static_cast<std::ptrdiff_t>(half)));
  }
  void barrier(Deadline deadline) override { inner_->barrier(deadline); }
  bool is_cancelled() const override { return inner_->is_cancelled(); }

 private:
  const std::unique_ptr<Communicator> inner_;
  const End end_;
};

class CutOffMeeting final : public Meeting {
 public:
  CutOffMeeting(ThreadGroup& group, CutOff::End end) : group_(group), end_(std::move(end)) {}

  void prepare(const CommunicatorShape&, int) override {}
  std::unique_ptr<Communicator> connect(const CommunicatorShape& shape) override {
    return std::make_unique<CutOff>(group_.connect(shape), end_);
  }

 private:
  ThreadGroup& group_;
  const CutOff::End end_;
};

std::vector<CallbackHandle> checkpoint_each_step() {
  return {ModelCheckpoint({.every_steps = 1})};
}

// Two replicas, of which one dies in the comparison after step kStep, and the other goes on alone.
struct SurvivingRun {
  int survivor = 0;
  int flipped = -1;  // whose state differs; -1: nobody's

  Outcome outcome{};
  std::int64_t step_brought = -2;  // into the generation of its own
  std::vector<std::string> roll_backs{};

  void run() {
    const TemporaryFolder folder;
    ThreadGroup both(2);
    ThreadGroup alone(1);
    std::promise<void> death;
    const std::shared_future<void> is_dead = death.get_future().share();
    run_ranks(2, both, [&](int rank) {
      if (rank == survivor) return live(make_context(rank, folder, both), alone, is_dead);
      Replica replica(make_context(rank, folder, both));
      EXPECT_THROW(train_small(replica, checkpoint_each_step()), Died);
      death.set_value();
    });
  }

 private:
  std::shared_ptr<Replica::Context> make_context(int rank, const TemporaryFolder& folder, ThreadGroup& both) const {
    auto context = std::make_shared<Replica::Context>();
    context->rank = rank;
    context->size = 2;
    context->shards = 4;
    context->seed = 3;
    context->run_directory = folder.path();
    context->collective_timeout = kPatience;
    const auto watch = std::make_shared<Flipping>(rank == flipped);
    context->supervision = watch;
    const bool is_survivor = rank == survivor;
    const bool is_any_flipped = flipped >= 0;
    context->meeting = std::make_shared<CutOffMeeting>(both, [=](bool are_equal) {
      if (is_any_flipped ? are_equal : watch->step() < kStep) return;
      if (is_survivor) throw GenerationEnded("the other replica is gone");
      throw Died{};
    });
    return context;
  }

  void live(const std::shared_ptr<Replica::Context>& context, ThreadGroup& alone,
            const std::shared_future<void>& is_dead) {
    bool is_first = true;
    context->enter_generation = [&, target = context.get()](std::int64_t step, const std::function<void()>&) {
      if (std::exchange(is_first, false)) return;
      step_brought = step;
      EXPECT_EQ(is_dead.wait_for(kPatience), std::future_status::ready);
      target->rank = 0;
      target->size = 1;
      target->meeting = std::make_shared<ThreadMeeting>(alone);
    };
    Replica replica(context);
    outcome = train_small(replica, checkpoint_each_step());
    roll_backs = static_cast<const Flipping&>(*context->supervision).roll_backs();
  }
};

}  // namespace

class LoneSurvivorOfADispute : public testing::TestWithParam<std::tuple<int, int>> {};

INSTANTIATE_TEST_SUITE_P(OfTwo, LoneSurvivorOfADispute, testing::Combine(testing::Values(0, 1), testing::Values(0, 1)));

// No other replica is left to show which of the states was right.
TEST_P(LoneSurvivorOfADispute, GoesBackIfItHasLearnedThatTheStatesDiffer) {
  const auto [survivor, flipped] = GetParam();
  SurvivingRun run{.survivor = survivor, .flipped = flipped};

  run.run();

  EXPECT_EQ(run.step_brought, -1) << "it kept its state";
  ASSERT_EQ(run.roll_backs.size(), 1U);
  EXPECT_NE(run.roll_backs[0].find("different states"), std::string::npos) << run.roll_backs[0];
  expect_equal(run.outcome, outcome_of({}));
}

TEST(LoneSurvivor, KeepsItsStateIfItHasLearnedThatTheStatesAreTheSame) {
  for (const int survivor : {0, 1}) {
    SurvivingRun run{.survivor = survivor};

    run.run();

    EXPECT_EQ(run.step_brought, kStep);
    EXPECT_TRUE(run.roll_backs.empty());
    expect_equal(run.outcome, outcome_of({}));
  }
}

namespace {

// Puts an infinity into the state of every rank after the last update, where no gradient shows it.
class Spoiling final : public NoSupervision {
 public:
  void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) override {
    if (point == FaultPoint::after_update && step == 5) {
      floats(FaultTarget::slot).front().front() = std::numeric_limits<float>::infinity();
    }
  }
};

// The error with which a training of six steps ends; empty if it succeeds.
std::string end_with(WhenNotFinite policy, int replicas) {
  try {
    train_on_threads({.replicas = replicas, .supervision = std::make_shared<Spoiling>()}, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
      trainer.fit(small_data().batch(10), {.when_not_finite = policy});
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_finite);
    return error.what();
  }
  return "";
}

}  // namespace

TEST(StateThatIsNotFinite, EndsATrainingThatCannotGoBack) {
  for (const int replicas : {1, 2}) {
    for (const WhenNotFinite policy : {WhenNotFinite::roll_back, WhenNotFinite::stop, WhenNotFinite::skip_step}) {
      const std::string sentence = end_with(policy, replicas);
      EXPECT_NE(sentence.find("after step 6 \"optimizer/"), std::string::npos) << sentence;
    }
  }
}

TEST(StateThatIsNotFinite, IsKeptIfTheOptionsSaySo) {
  EXPECT_EQ(end_with(WhenNotFinite::go_on, 2), "");
}

}  // namespace holdfast
