#include "holdfast/train/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "support/played_context.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

// A clock that the test moves.
struct PlayedClock {
  std::chrono::steady_clock::time_point time{seconds(1000)};

  TimerOptions options(std::optional<milliseconds> limit = {}) {
    return {.limit = limit, .now = [this] { return time; }};
  }
};

void run_epoch(Timer& timer, PlayedContext& context, PlayedClock& clock, seconds duration) {
  timer.on_epoch_begin(context);
  clock.time += duration;
  timer.on_step_end(context, {});
  timer.on_epoch_end(context, {});
  ++context.epoch_number;
}

}  // namespace

TEST(Timer, MeasuresEachEpoch) {
  const TemporaryFolder folder;
  PlayedClock clock;
  PlayedContext context;
  context.directory = folder.path();
  Timer timer(clock.options());

  timer.on_fit_begin(context);
  clock.time += seconds(5);  // before the first epoch
  run_epoch(timer, context, clock, seconds(12));
  run_epoch(timer, context, clock, seconds(24));

  EXPECT_THAT(timer.epoch_seconds(), ElementsAre(12, 24));
  EXPECT_EQ(timer.seconds(), 41);
  EXPECT_EQ(read_file(folder / "times.csv"), "epoch,seconds,steps,seconds_per_step\n0,12,12,1\n1,24,12,2\n");
}

TEST(Timer, EndsTheTrainingWhenItsTimeIsSpentOverAllStarts) {
  PlayedClock clock;
  PlayedContext context;
  Timer first(clock.options(seconds(30)));
  first.on_fit_begin(context);
  run_epoch(first, context, clock, seconds(12));
  EXPECT_FALSE(context.stopped);
  const CallbackState state = first.state();
  clock.time += seconds(3600);  // nothing trains

  Timer second(clock.options(seconds(30)));
  second.restore(state);
  run_epoch(second, context, clock, seconds(17));
  EXPECT_FALSE(context.stopped);
  EXPECT_EQ(second.seconds(), 29);
  run_epoch(second, context, clock, seconds(1));

  EXPECT_TRUE(context.stopped);
  EXPECT_TRUE(second.has_ended_fit());
  EXPECT_THAT(second.epoch_seconds(), ElementsAre(12, 17, 1));
}

TEST(Timer, RefusesAnEmptyClock) {
  EXPECT_EQ(code_thrown_by([] { Timer(TimerOptions{.now = {}}); }), ErrorCode::invalid_argument);
}

TEST(Timer, RefusesABudgetThatIsNotPositive) {
  EXPECT_EQ(code_thrown_by([] { Timer(TimerOptions{.limit = milliseconds(0)}); }), ErrorCode::invalid_argument);
}

}  // namespace holdfast
