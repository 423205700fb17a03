#include "journal/recorded_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "decide/supervisor.h"

namespace holdfast::recovery {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::Pair;

// The line of a decision, as far as it tells of actions.
json line_of(const std::vector<Action>& actions) {
  json line;
  for (const Action& action : actions) line["actions"].push_back(describe(action, Moment{}));
  return line;
}

TEST(RecordedActions, AreThoseThatWereDescribed) {
  const RecordedActions actions =
      recorded_actions(line_of({{.kind = ActionKind::start_process, .member = 12, .place = 3},
                                {.kind = ActionKind::kill_process, .member = 4},
                                {.kind = ActionKind::cancel_generation, .generation = 6},
                                {.kind = ActionKind::record_failure, .member = 4, .text = "exited with code 3"},
                                {.kind = ActionKind::finish, .exit_code = 70, .text = "gave up: it was no use"}}));

  EXPECT_THAT(actions.started, ElementsAre(Pair(12, 3)));
  EXPECT_THAT(actions.killed, ElementsAre(4));
  EXPECT_EQ(actions.cancelled, 6);
  EXPECT_THAT(actions.failures, ElementsAre(Pair(4, "exited with code 3")));
  EXPECT_TRUE(actions.has_failure_of(4));
  EXPECT_FALSE(actions.has_failure_of(12));
  ASSERT_TRUE(actions.finish.has_value());
  EXPECT_THAT(*actions.finish, Pair(70, "gave up: it was no use"));
}

TEST(RecordedActions, TellTheMembersOfAGenerationFromTheirShards) {
  const RecordedActions actions = recorded_actions(
      line_of({{.kind = ActionKind::open_generation, .generation = 2, .members = {0, 5, 3}, .shards = {4, 1, 1}}}));

  EXPECT_EQ(actions.opened, 2);
  EXPECT_THAT(actions.members, ElementsAre(0, 5, 3));
}

TEST(RecordedActions, AreNoneInALineWithout) {
  const RecordedActions actions = recorded_actions({{"event", "ready"}});

  EXPECT_TRUE(actions.started.empty());
  EXPECT_FALSE(actions.opened.has_value());
}

TEST(RecordedActions, RefuseWhatIsNoText) {
  EXPECT_THROW(recorded_actions({{"actions", {1}}}), json::exception);
}

}  // namespace
}  // namespace holdfast::recovery
