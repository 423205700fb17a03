#include "train/saving/memory_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "support/rank_threads.h"
#include "support/temporary_folder.h"
#include "train/state/snapshot.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

constexpr std::int64_t kEndedStep = 5;  // in which the generation ends

// Ends the generation in a step, once, and has memory that outlives the process.
class Ending final : public NoSupervision {
 public:
  struct Kept {
    std::int64_t step = 0;
    std::vector<std::byte> image{};
  };

  explicit Ending(bool is_to_overflow = false, bool has_memory = true)
      : is_to_overflow_(is_to_overflow), has_memory_(has_memory) {}

  void reach(FaultPoint point, std::int64_t step) override {
    if (point == FaultPoint::compute && step == kEndedStep && !std::exchange(has_ended_, true)) {
      throw GenerationEnded("the other hosts are gone");
    }
  }
  void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) override {
    if (point != FaultPoint::after_update || step != kEndedStep - 1 || !std::exchange(is_to_overflow_, false)) return;
    floats(FaultTarget::weight).front().front() = std::numeric_limits<float>::infinity();
  }
  void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) override {
    if (!has_memory_) throw Error(ErrorCode::out_of_memory, "there is no memory for snapshots");
    std::vector<std::byte> image(bytes);
    write(0, image);
    if (accepts(image)) kept_.push_back({step, std::move(image)});
  }

  const std::vector<Kept>& kept() const { return kept_; }

 private:
  bool is_to_overflow_;
  bool has_memory_;
  bool has_ended_ = false;
  std::vector<Kept> kept_;
};

// A replica alone that leaves its generation in step kEndedStep, and waits so long for the next one that it is to keep
// its state.
struct WaitingRun {
  std::shared_ptr<Ending> supervision = std::make_shared<Ending>();
  int rank_when_waiting = 0;

  std::vector<std::int64_t> steps_brought{};
  Outcome outcome{};

  void run() {
    const TemporaryFolder folder;
    ThreadGroup alone(1);
    auto context = std::make_shared<Replica::Context>();
    context->size = 1;
    context->shards = 4;
    context->seed = 3;
    context->run_directory = folder.path();
    context->memory_snapshot_every = 1'000'000;
    context->supervision = supervision;
    context->meeting = std::make_shared<ThreadMeeting>(alone);
    context->enter_generation = [&, target = context.get()](std::int64_t step,
                                                            const std::function<void()>& keep_state) {
      steps_brought.push_back(step);
      target->rank = rank_when_waiting;
      if (step >= 0) keep_state();
      target->rank = 0;
    };
    Replica replica(context);
    outcome = train_small(replica);
  }
};

TEST(MemorySaver, KeepsTheStateOfAReplicaThatWaitsForItsNextGeneration) {
  WaitingRun run;

  run.run();

  EXPECT_THAT(run.steps_brought, testing::ElementsAre(-1, kEndedStep));
  ASSERT_EQ(run.supervision->kept().size(), 1U);
  EXPECT_EQ(run.supervision->kept().front().step, kEndedStep);
  const Snapshot kept = view_of_image(run.supervision->kept().front().image);
  EXPECT_EQ(kept.state.step, kEndedStep);
  EXPECT_FALSE(kept.arrays.empty());
  expect_equal(run.outcome, outcome_of({}));
}

TEST(MemorySaver, KeepsNoStateOfARankWhoseStateItsHostHasFromAnother) {
  WaitingRun run{.rank_when_waiting = 1};

  run.run();

  EXPECT_THAT(run.steps_brought, testing::ElementsAre(-1, kEndedStep));
  EXPECT_TRUE(run.supervision->kept().empty());
}

// The next start would go on with it.
TEST(MemorySaver, KeepsNoStateThatIsNotFiniteWhileItWaits) {
  WaitingRun run{.supervision = std::make_shared<Ending>(true)};

  run.run();

  EXPECT_THAT(run.steps_brought, testing::Contains(kEndedStep));
  // One of a later step is kept, after the replica has gone back and come past this one.
  for (const Ending::Kept& kept : run.supervision->kept()) EXPECT_NE(kept.step, kEndedStep);
}

TEST(MemorySaver, GoesOnWhereThereIsNoMemoryForTheStateWhileItWaits) {
  WaitingRun run{.supervision = std::make_shared<Ending>(false, false)};

  run.run();

  EXPECT_THAT(run.steps_brought, testing::ElementsAre(-1, kEndedStep));
  expect_equal(run.outcome, outcome_of({}));
}

}  // namespace
}  // namespace holdfast
