#include "train/memory_snapshot_keeper.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "support/special_floats.h"
#include "unit/train/support/held_by_a_test.h"

namespace holdfast {
namespace {

// Memory for one state, as a watchdog would have it.
class KeptHere final : public NoSupervision {
 public:
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) override {
    const auto memory = std::make_shared<std::vector<float>>(bytes / sizeof(float) + 1);
    const std::span<std::byte> all = std::as_writable_bytes(std::span(*memory));
    const std::span<std::byte> image = all.first(bytes);
    return OutlivingMemory{
        .bytes = image, .all = all, .mapping = memory, .keep = [this, step, image](const auto& accepts) {
          if (!accepts(image)) return false;
          kept_step = step;
          kept = std::string(reinterpret_cast<const char*>(image.data()), image.size());
          return true;
        }};
  }

  std::int64_t kept_step = -1;  // once the keeper has finished
  std::string kept;
};

std::string text_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

MemorySnapshotKeeper::State state_of(std::int64_t step, const std::shared_ptr<HeldArrays>& held) {
  static const std::vector<float> elsewhere(5);
  return {.step = step,
          .header = "header..",
          .arrays = {std::span(elsewhere).first(2), std::span(elsewhere).subspan(2)},
          .held = held};
}

class MemorySnapshotKeeperTest : public testing::Test {
 protected:
  KeptHere supervision_;
  MemorySnapshotKeeper keeper_{supervision_};
  const std::shared_ptr<HeldByATest> held_ =
      std::make_shared<HeldByATest>(std::vector<std::vector<float>>{{1, 2}, {3, 4, 5}});
};

TEST_F(MemorySnapshotKeeperTest, KeepsHeaderAndArraysOneBehindTheOther) {
  keeper_.keep(state_of(7, held_), host_memory());
  keeper_.finish();

  EXPECT_EQ(supervision_.kept_step, 7);
  EXPECT_EQ(supervision_.kept, "header.." + text_of({1, 2, 3, 4, 5}));
}

TEST_F(MemorySnapshotKeeperTest, TellsOnceHowLongItTook) {
  EXPECT_FALSE(keeper_.take_finished());
  keeper_.keep(state_of(7, held_), host_memory());

  std::optional<MemorySnapshotKeeper::Times> times;
  while (!times) times = keeper_.take_finished();

  EXPECT_LE(times->begin, times->end);
  EXPECT_FALSE(keeper_.is_busy());
  EXPECT_FALSE(keeper_.take_finished());
}

TEST_F(MemorySnapshotKeeperTest, DoesNotLetCountWhatIsNotFiniteThoughItShouldBe) {
  const auto spoilt = std::make_shared<HeldByATest>(std::vector<std::vector<float>>{{1, kInfinity}, {3, 4, 5}});
  MemorySnapshotKeeper::State wanted = state_of(7, spoilt);
  wanted.must_be_finite = {true, false};
  MemorySnapshotKeeper::State unwanted = state_of(8, spoilt);
  unwanted.must_be_finite = {false, true};
  std::string said;
  set_log_sink([&](LogLevel, std::string_view line) { said += line; });

  keeper_.keep(std::move(wanted), host_memory());
  keeper_.finish();
  set_log_sink({});

  EXPECT_EQ(supervision_.kept_step, -1);
  EXPECT_NE(said.find("the state of step 7 is not finite"), std::string::npos) << said;
  keeper_.keep(std::move(unwanted), host_memory());
  keeper_.finish();
  EXPECT_EQ(supervision_.kept_step, 8);
}

TEST_F(MemorySnapshotKeeperTest, DoesNotLetCountWhatArrivedAsSomethingElse) {
  held_->arrive_as({{1, 2}, {3, 4, 6}});

  keeper_.keep(state_of(7, held_), host_memory());

  try {
    keeper_.finish();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
    EXPECT_NE(std::string(error.what()).find("the state of step 7"), std::string::npos) << error.what();
  }
  EXPECT_EQ(supervision_.kept_step, -1);
}

TEST_F(MemorySnapshotKeeperTest, TellsTheNextCallerThatTheDeviceFailed) {
  held_->fail();
  keeper_.keep(state_of(7, held_), host_memory());

  EXPECT_THROW(keeper_.keep(state_of(8, held_), host_memory()), Error);
  EXPECT_EQ(supervision_.kept_step, -1);
}

TEST_F(MemorySnapshotKeeperTest, DoesNothingWhereNoMemoryOutlivesTheProcess) {
  NoSupervision nobody;
  MemorySnapshotKeeper keeper(nobody);

  keeper.keep(state_of(7, held_), host_memory());

  EXPECT_FALSE(keeper.is_busy());
  EXPECT_FALSE(keeper.take_finished());
}

}  // namespace
}  // namespace holdfast
