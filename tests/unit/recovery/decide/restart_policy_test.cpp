#include "decide/restart_policy.h"

#include <gtest/gtest.h>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

TEST(RestartPolicy, DoublesThePauseUpToTheLongest) {
  const RecoveryOptions options;
  const RestartPolicy policy;
  RestartHistory history;
  std::vector<std::chrono::milliseconds> pauses;

  for (int i = 0; i < 9; ++i) {
    history = with_restart(options, history, Moment{});
    pauses.push_back(pause_before(policy, history));
  }

  EXPECT_EQ(pauses, (std::vector<std::chrono::milliseconds>{0ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5s, 5s}));
}

TEST(RestartPolicy, NeverWaitsLongerThanTheLongestPause) {
  const RestartPolicy policy;

  EXPECT_EQ(pause_before(policy, {.restarts = {}, .without_progress = 1'000'000}), policy.longest_pause);
}

TEST(RestartPolicy, CountsOnlyRestartsWithinTheWindow) {
  const RecoveryOptions options{.max_restarts = 2, .restart_window = 10s};
  RestartHistory history;
  history = with_restart(options, history, Moment{} + 1s);
  history = with_restart(options, history, Moment{} + 5s);

  EXPECT_FALSE(allows_restart(options, history, Moment{} + 10s));
  EXPECT_TRUE(allows_restart(options, history, Moment{} + 11s));
}

TEST(RestartPolicy, ForgetsRestartsOlderThanTheWindow) {
  const RecoveryOptions options{.restart_window = 10s};
  RestartHistory history;

  for (int i = 0; i < 100; ++i) history = with_restart(options, history, Moment{} + i * 5s);

  EXPECT_EQ(history.restarts.size(), 2U);
}

TEST(RestartPolicy, NamesTheLimitAndTheOptionsThatSetIt) {
  const RecoveryOptions options{.max_restarts = 1, .restart_window = 10s};

  EXPECT_EQ(restart_limit(options), "1 restart within 10.0 s");
  EXPECT_EQ(budget_spent(options),
            "gave up after 1 restart within 10.0 s, the limit of max_restarts and restart_window");
}

}  // namespace
}  // namespace holdfast::recovery
