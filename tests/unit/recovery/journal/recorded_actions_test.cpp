// Actions as JSON and back. Journals of old runs have actions as text, which must stay readable.

#include "journal/recorded_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/recovery/support/scenario.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::Pair;

// The actions of one decision in both forms: as they are written, and as text in journals of old runs.
std::vector<Json> lines_of(const std::vector<Action>& actions) {
  Json line;
  Json earlier;
  for (const Action& action : actions) {
    line["actions"].push_back(to_json(action, Moment{}));
    earlier["actions"].push_back(describe(action, Moment{}));
  }
  return {line, earlier};
}

TEST(RecordedActions, AreReadBackAsWritten) {
  for (const Json& line : lines_of({{.kind = ActionKind::start_process, .member = 12, .device_slot = 3},
                                    {.kind = ActionKind::kill_process, .member = 4},
                                    {.kind = ActionKind::cancel_generation, .generation = 6},
                                    {.kind = ActionKind::ask_to_regroup},
                                    {.kind = ActionKind::set_timer, .moment = Moment{std::chrono::seconds(2)}},
                                    {.kind = ActionKind::record_failure, .member = 4, .text = "exited with code 3"},
                                    {.kind = ActionKind::finish, .exit_code = 70, .text = "gave up: it was no use"}})) {
    const RecordedActions actions = recorded_actions(line);

    EXPECT_THAT(actions.started, ElementsAre(Pair(12, 3))) << line;
    EXPECT_THAT(actions.killed, ElementsAre(4));
    EXPECT_EQ(actions.cancelled, 6);
    EXPECT_THAT(actions.failures, ElementsAre(Pair(4, "exited with code 3")));
    EXPECT_TRUE(actions.has_failure_of(4));
    EXPECT_FALSE(actions.has_failure_of(12));
    ASSERT_TRUE(actions.finish.has_value());
    EXPECT_THAT(*actions.finish, Pair(70, "gave up: it was no use"));
  }
}

TEST(RecordedActions, DistinguishMembersFromShards) {
  for (const Json& line :
       lines_of({{.kind = ActionKind::open_generation, .generation = 2, .members = {0, 5, 3}, .shards = {4, 1, 1}}})) {
    const RecordedActions actions = recorded_actions(line);

    EXPECT_EQ(actions.opened, 2) << line;
    EXPECT_THAT(actions.members, ElementsAre(0, 5, 3));
  }
}

TEST(RecordedActions, AreWrittenAsDocumented) {
  const Json generation = to_json({.kind = ActionKind::open_generation, .generation = 2, .members = {0, 5}}, Moment{});
  const Json timer = to_json({.kind = ActionKind::set_timer, .moment = Moment{std::chrono::seconds(2)}},
                             Moment{std::chrono::milliseconds(1500)});

  EXPECT_EQ(generation, (Json{{"action", "open_generation"}, {"generation", 2}, {"members", {0, 5}}}));
  EXPECT_EQ(timer, (Json{{"action", "set_timer"}, {"seconds", 0.5}}));
}

TEST(RecordedActions, SkipActionsOfALaterVersion) {
  const RecordedActions actions = recorded_actions({{"actions", {{{"action", "wave"}, {"member", 3}}}}});

  EXPECT_TRUE(actions.killed.empty());
}

TEST(RecordedActions, AreEmptyForALineWithoutActions) {
  const RecordedActions actions = recorded_actions({{"event", "ready"}});

  EXPECT_TRUE(actions.started.empty());
  EXPECT_FALSE(actions.opened.has_value());
}

TEST(RecordedActions, RefuseAnActionThatIsNeitherAnObjectNorText) {
  EXPECT_THROW(recorded_actions({{"actions", {1}}}), Json::exception);
  EXPECT_THROW(recorded_actions({{"actions", {{{"action", "kill_process"}}}}}), Json::exception);
}

}  // namespace
}  // namespace holdfast::recovery
