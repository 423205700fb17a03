// Arrays arrive when the test wants it, as they would from a device, and time is a variable: no device is needed and
// nothing sleeps.

#include "train/saving/memory_snapshot_keeper.h"

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

// Memory for one state, such as a watchdog provides.
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

  std::int64_t kept_step = -1;  // read it after the keeper has finished
  std::string kept;
};

std::string text_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

MemorySnapshotKeeper::State state_of(std::int64_t step, const std::shared_ptr<HeldArrays>& held) {
  static const std::vector<float> elsewhere(5);
  return {.step = step,
          .image = {.header = "header..",
                    .arrays = {std::span(elsewhere).first(2), std::span(elsewhere).subspan(2)},
                    .memory = host_memory()},
          .held = held};
}

using TimePoint = MemorySnapshotKeeper::Clock::time_point;

// To find its memory takes a minute, and so does registering it with the device. To send the state there takes a
// second.
class SlowAtFirst final : public NoSupervision, public HeldArrays {
 public:
  explicit SlowAtFirst(TimePoint& time) : time_(time) {}

  std::optional<OutlivingMemory> begin_in_memory(std::int64_t, std::size_t bytes) override {
    if (memory_ == nullptr) time_ += std::chrono::minutes(1);
    if (memory_ == nullptr) memory_ = std::make_shared<std::vector<float>>(bytes / sizeof(float));
    const std::span<std::byte> all = std::as_writable_bytes(std::span(*memory_));
    return OutlivingMemory{
        .bytes = all, .all = all, .mapping = memory_, .keep = [all](const auto& accepts) { return accepts(all); }};
  }

  Digest digest() override { return DigestBuilder().finish(); }
  void begin_copy(std::span<const std::span<float>>) override { time_ += std::chrono::seconds(1); }
  void finish_copy() override {}

 private:
  TimePoint& time_;
  std::shared_ptr<std::vector<float>> memory_;
};

class SlowToPin final : public MemorySpace {
 public:
  explicit SlowToPin(TimePoint& time) : time_(time) {}

  std::string device() const override { return "cuda:0"; }
  std::shared_ptr<float[]> allocate(std::size_t floats) override { return host_memory().allocate(floats); }
  void copy_to_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy_from_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy(std::span<const float> from, std::span<float> to) override { host_memory().copy(from, to); }
  void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) override {
    host_memory().gather(from, rows, to);
  }
  void add(std::span<const float> summand, std::span<float> sum) override { host_memory().add(summand, sum); }
  bool is_finite(std::span<const float> array) override { return host_memory().is_finite(array); }
  void fill_zero(std::span<float> array) override { host_memory().fill_zero(array); }
  Digest digest_of(std::span<const std::span<const float>> arrays) override { return host_memory().digest_of(arrays); }
  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) override {
    return host_memory().hold(arrays);
  }
  std::unique_ptr<RowFeed> feed(std::span<const float>, std::size_t) override { return nullptr; }
  void wait() override {}
  void set_time_limit(std::chrono::milliseconds) override {}
  void pin(std::span<std::byte>) override { time_ += std::chrono::minutes(1); }
  void unpin(std::span<std::byte>) override {}

 private:
  TimePoint& time_;
};

class MemorySnapshotKeeperTest : public testing::Test {
 protected:
  KeptHere supervision_;
  MemorySnapshotKeeper keeper_{supervision_};
  const std::shared_ptr<HeldByATest> held_ =
      std::make_shared<HeldByATest>(std::vector<std::vector<float>>{{1, 2}, {3, 4, 5}});
};

TEST_F(MemorySnapshotKeeperTest, KeepsTheHeaderAndThenTheArrays) {
  keeper_.keep(state_of(7, held_));
  keeper_.finish();

  EXPECT_EQ(supervision_.kept_step, 7);
  EXPECT_EQ(supervision_.kept, "header.." + text_of({1, 2, 3, 4, 5}));
}

TEST_F(MemorySnapshotKeeperTest, ReportsOnceHowLongItTook) {
  EXPECT_FALSE(keeper_.take_finished());
  keeper_.keep(state_of(7, held_));

  std::optional<MemorySnapshotKeeper::Times> times;
  while (!times) times = keeper_.take_finished();

  EXPECT_LE(times->begin, times->end);
  EXPECT_FALSE(keeper_.is_busy());
  EXPECT_FALSE(keeper_.take_finished());
}

TEST(MemorySnapshotKeeper, ReportsApartWhatOnlyTheFirstSnapshotTakes) {
  TimePoint time;
  const auto slow = std::make_shared<SlowAtFirst>(time);
  SlowToPin memory(time);
  MemorySnapshotKeeper keeper(*slow, [&] { return time; });
  const MemorySnapshotKeeper::State state = {
      .step = 1, .image = {.header = "header..", .arrays = {}, .memory = memory}, .held = slow};

  EXPECT_EQ(keeper.keep(state), std::chrono::minutes(2));
  keeper.finish();
  EXPECT_EQ(keeper.keep(state), std::chrono::minutes(0));
  keeper.finish();

  EXPECT_EQ(time, TimePoint() + std::chrono::minutes(2) + std::chrono::seconds(2));
}

TEST_F(MemorySnapshotKeeperTest, DropsAStateThatIsNotFiniteThoughItShouldBe) {
  const auto spoilt = std::make_shared<HeldByATest>(std::vector<std::vector<float>>{{1, kInfinity}, {3, 4, 5}});
  MemorySnapshotKeeper::State wanted = state_of(7, spoilt);
  wanted.must_be_finite = {true, false};
  MemorySnapshotKeeper::State unwanted = state_of(8, spoilt);
  unwanted.must_be_finite = {false, true};
  std::string said;
  set_log_sink([&](LogLevel, std::string_view line) { said += line; });

  keeper_.keep(std::move(wanted));
  keeper_.finish();
  set_log_sink({});

  EXPECT_EQ(supervision_.kept_step, -1);
  EXPECT_NE(said.find("the state of step 7 is not finite"), std::string::npos) << said;
  keeper_.keep(std::move(unwanted));
  keeper_.finish();
  EXPECT_EQ(supervision_.kept_step, 8);
}

TEST_F(MemorySnapshotKeeperTest, DropsAStateThatArrivesAsAnother) {
  held_->arrive_as({{1, 2}, {3, 4, 6}});

  keeper_.keep(state_of(7, held_));

  try {
    keeper_.finish();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
    EXPECT_NE(std::string(error.what()).find("the state of step 7"), std::string::npos) << error.what();
  }
  EXPECT_EQ(supervision_.kept_step, -1);
}

TEST_F(MemorySnapshotKeeperTest, ReportsAFailureOfTheDeviceToTheNextCaller) {
  held_->fail();
  keeper_.keep(state_of(7, held_));

  EXPECT_THROW(keeper_.keep(state_of(8, held_)), Error);
  EXPECT_EQ(supervision_.kept_step, -1);
}

TEST_F(MemorySnapshotKeeperTest, DoesNothingIfNoMemoryOutlivesTheProcess) {
  NoSupervision nobody;
  MemorySnapshotKeeper keeper(nobody);

  keeper.keep(state_of(7, held_));

  EXPECT_FALSE(keeper.is_busy());
  EXPECT_FALSE(keeper.take_finished());
}

}  // namespace
}  // namespace holdfast
