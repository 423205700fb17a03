// Whole runs in virtual time: the detector must stay silent about healthy replicas, and name one that hangs.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "detect/hang_detector.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Nanoseconds = std::chrono::nanoseconds;
using Random = std::mt19937_64;

constexpr int kMembers = 4;
constexpr Nanoseconds kReduce = 2ms;
constexpr Nanoseconds kUpdate = 1ms;
constexpr Nanoseconds kTick = 100ms;

// The behaviour of replicas and machine.
struct World {
  std::function<Nanoseconds(Random&)> work;  // the time of one member for one step
  // The part of its working time in which a member runs, or would run with a free processor.
  double demand = 0;
  // The delay of a look.
  std::function<Nanoseconds(Random&)> lateness = [](Random&) { return Nanoseconds::zero(); };
  // Sometimes the whole machine stands still, and the watchdog with it.
  Nanoseconds freeze{};
  // Sometimes other programs take most of the processors, and everything takes this many times as long.
  int crowd = 1;
};

enum class HangKind { asleep, stopped, in_a_collective };

// Members make steps together: each works, waits for the slowest, reduces and updates.
class WatchedRun {
 public:
  WatchedRun(const World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  std::optional<Hang> train(int steps) {
    for (int count = 0; count < steps; ++count) {
      draw_step();
      if (const std::optional<Hang> hang = look_until(end_of_step())) return hang;
      for (int member = 0; member < kMembers; ++member) {
        step_time_[member] += work_[member] + kUpdate;
        demand_[member] += running(work_[member]);
      }
      start_ = end_of_step();
      ++step_;
      step_times_.push_back(slowest() + kReduce + kUpdate);
    }
    return std::nullopt;
  }

  // Lets a member hang during its work, or in the collective that follows. Returns what is noticed within a minute.
  std::optional<Hang> hang(int member, HangKind kind) {
    draw_step();
    hung_ = member;
    kind_ = kind;
    if (kind != HangKind::in_a_collective) work_[member] /= 2;
    hung_since_ = start_ + (kind == HangKind::in_a_collective ? slowest() : work_[member]);
    return look_until(hung_since_ + 1min);
  }

  Nanoseconds noticed_after() const { return now_ - hung_since_; }

  Nanoseconds p99_of_steps() const {
    std::vector<Nanoseconds> times = step_times_;
    const auto at = times.begin() + static_cast<std::ptrdiff_t>((times.size() * 99 + 99) / 100 - 1);
    std::nth_element(times.begin(), at, times.end());
    return *at;
  }

 private:
  void draw_step() {
    // One in five periods of 500 steps is crowded, and the machine freezes in one of 200 steps.
    is_crowded_ = world_.crowd > 1 && (step_ / 500) % 5 == 4;
    const bool freezes = world_.freeze > 0ns && random_() % 200 == 0;
    for (Nanoseconds& work : work_) work = world_.work(random_) * (is_crowded_ ? world_.crowd : 1);
    if (!freezes) return;
    for (Nanoseconds& work : work_) work += world_.freeze;
    next_look_ = std::max(next_look_, start_) + world_.freeze;
  }

  std::optional<Hang> look_until(Nanoseconds end) {
    for (; next_look_ < end; next_look_ += kTick + world_.lateness(random_)) {
      now_ = next_look_;
      if (std::optional<Hang> hang = detector_.look(heartbeats(), Moment(now_))) return hang;
    }
    return std::nullopt;
  }

  Nanoseconds slowest() const { return *std::max_element(work_.begin(), work_.end()); }
  Nanoseconds end_of_step() const { return start_ + slowest() + kReduce + kUpdate; }
  Nanoseconds running(Nanoseconds time) const {
    return Nanoseconds(std::llround(static_cast<double>(time.count()) * world_.demand));
  }

  std::vector<Heartbeat> heartbeats() const {
    std::vector<Heartbeat> heartbeats;
    for (int member = 0; member < kMembers; ++member) heartbeats.push_back(heartbeat(member));
    return heartbeats;
  }

  Heartbeat heartbeat(int member) const {
    const Nanoseconds time = now_ - start_;
    const auto steps = static_cast<std::uint64_t>(step_);
    Heartbeat heartbeat{.member = member,
                        .progress = 10 * steps,
                        .phase = Phase::computing,
                        .step = step_,
                        .steps = steps,
                        .step_time = step_time_[member],
                        .arrivals = 2 * steps};
    if (time < work_[member] || (member == hung_ && kind_ != HangKind::in_a_collective)) return heartbeat;
    heartbeat.phase = Phase::waiting_for_peers;
    ++heartbeat.progress;
    if (member != hung_) ++heartbeat.arrivals;
    if (hung_ >= 0 || time < slowest() + kReduce) return heartbeat;
    heartbeat.phase = Phase::updating;
    ++heartbeat.progress;
    ++heartbeat.arrivals;
    return heartbeat;
  }

  Nanoseconds demand_of(int member) const {
    return demand_[member] + running(std::clamp(now_ - start_, Nanoseconds::zero(), work_[member]));
  }

  const World& world_;
  Random random_;
  HangDetector detector_{{},
                         {.is_stopped = [this](int member) { return member == hung_ && kind_ == HangKind::stopped; },
                          .cpu_demand = [this](int member) { return demand_of(member); }}};
  Nanoseconds now_{};
  Nanoseconds next_look_{};
  Nanoseconds start_{};  // when the step began
  std::int64_t step_ = 0;
  bool is_crowded_ = false;
  std::array<Nanoseconds, kMembers> work_{};
  std::array<Nanoseconds, kMembers> step_time_{};
  std::array<Nanoseconds, kMembers> demand_{};
  std::vector<Nanoseconds> step_times_;
  int hung_ = -1;
  HangKind kind_ = HangKind::asleep;
  Nanoseconds hung_since_{};
};

std::function<Nanoseconds(Random&)> lognormal(Nanoseconds median, double sigma) {
  return [=](Random& random) {
    std::normal_distribution<double> normal(0, sigma);
    return Nanoseconds(std::llround(static_cast<double>(median.count()) * std::exp(normal(random))));
  };
}

// A heavy-tailed time, whose squares have no mean. No step takes longer than `longest`.
std::function<Nanoseconds(Random&)> pareto(Nanoseconds shortest, double alpha, Nanoseconds longest) {
  return [=](Random& random) {
    const double uniform = std::uniform_real_distribution(1e-12, 1.0)(random);
    const double scale = std::pow(uniform, -1 / alpha);
    return std::min(longest, Nanoseconds(std::llround(static_cast<double>(shortest.count()) * scale)));
  };
}

// Three of ten looks are late, by an exponentially distributed time.
std::function<Nanoseconds(Random&)> often_late(Nanoseconds mean) {
  return [=](Random& random) {
    if (random() % 10 >= 3) return Nanoseconds::zero();
    std::exponential_distribution<double> draw(1 / static_cast<double>(mean.count()));
    return Nanoseconds(std::llround(draw(random)));
  };
}

class HealthyRun : public testing::TestWithParam<World> {};

TEST_P(HealthyRun, RaisesNoAlarmInAHundredThousandSteps) {
  WatchedRun run(GetParam(), 5);

  const std::optional<Hang> hang = run.train(100'000);

  EXPECT_FALSE(hang.has_value()) << hang->what << " (p99 of steps: " << run.p99_of_steps().count() / 1'000'000
                                 << " ms)";
}

INSTANTIATE_TEST_SUITE_P(
    HangDetector, HealthyRun,
    testing::Values(
        // A member that sleeps while it works: it waits for a device or for data.
        World{.work = lognormal(10ms, 0.3)}, World{.work = lognormal(150ms, 0.4)}, World{.work = lognormal(500ms, 0.3)},
        World{.work = pareto(5ms, 3, 700ms)},
        // A member that computes, with heavy tails.
        World{.work = pareto(20ms, 1.5, 25s), .demand = 1},
        // Sixteen busy threads sometimes take most of two processors. Steps take nine times as long, the replica is
        // ready to run all the time, and every third look is late by half a second or more.
        World{.work = lognormal(100ms, 0.4), .demand = 1, .lateness = often_late(500ms), .crowd = 9},
        // The same on a kernel that does not count the time that threads are ready to run.
        World{.work = lognormal(50ms, 0.3), .demand = 0.11, .lateness = often_late(500ms), .crowd = 9},
        // Only late looks, and a machine that stands still for three seconds or sleeps for an hour.
        World{.work = lognormal(50ms, 0.4), .lateness = often_late(5s)},
        World{.work = lognormal(50ms, 0.4), .freeze = 3s}, World{.work = lognormal(50ms, 0.4), .freeze = 1h}));

class HangingRun : public testing::TestWithParam<HangKind> {};

TEST_P(HangingRun, IsNoticedWithinASecondAndThreeStepTimesAndNamed) {
  Random random(17);
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const auto median = Nanoseconds(1ms) * (1 + static_cast<int>(random() % 500));
    const World world{.work = lognormal(median, 0.3)};
    WatchedRun run(world, trial);
    ASSERT_FALSE(run.train(20 + static_cast<int>(random() % 200)).has_value()) << "trial " << trial;
    const int guilty = static_cast<int>(random() % kMembers);

    const std::optional<Hang> hang = run.hang(guilty, GetParam());

    ASSERT_TRUE(hang.has_value()) << "trial " << trial;
    EXPECT_EQ(hang->member, guilty) << "trial " << trial;
    EXPECT_LE(run.noticed_after(), 1s + 3 * run.p99_of_steps()) << "trial " << trial << ": " << hang->what;
  }
}

INSTANTIATE_TEST_SUITE_P(HangDetector, HangingRun,
                         testing::Values(HangKind::asleep, HangKind::stopped, HangKind::in_a_collective));

}  // namespace
}  // namespace holdfast::recovery
