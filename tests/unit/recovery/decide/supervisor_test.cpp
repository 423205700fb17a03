// Plays tests/scenarios/*.scenario to the supervisor (support/scenario.h), and checks that each of its sentences
// appears in some scenario.

#include "decide/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/folders.h"
#include "unit/recovery/support/scenario.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool is_as_expected(const std::string& actual, const std::string& expected) {
  if (!expected.ends_with("...")) return actual == expected;
  return actual.starts_with(expected.substr(0, expected.size() - 3));
}

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/tests/scenarios")) {
    if (entry.path().extension() == ".scenario") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class SupervisorScenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SupervisorScenario, GoesAsWritten) {
  const Scenario scenario = read_scenario(GetParam());

  const std::vector<ToldStep> told = tell(scenario);

  for (std::size_t i = 0; i < told.size(); ++i) {
    const ScenarioStep& step = scenario.steps[i];
    const std::vector<std::string>& actual = told[i].actions;
    EXPECT_TRUE(std::equal(actual.begin(), actual.end(), step.expected.begin(), step.expected.end(), is_as_expected))
        << "line " << step.line << ": actions are " << testing::PrintToString(actual) << ", expected "
        << testing::PrintToString(step.expected);
    EXPECT_FALSE(told[i].reason.empty()) << "line " << step.line;
    for (const std::string& reason : step.reasons) EXPECT_THAT(told[i].reason, HasSubstr(reason)) << step.line;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SupervisorScenario, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return file.param.stem().string(); });

// Changes of device slot 1, as the journal has them.
std::string left_out(int member, DeviceSlotChange change) {
  change.device_slot = 1;
  change.member = member;
  return to_json(change).dump();
}
std::string tried(int member) {
  return to_json({.kind = DeviceSlotChange::Kind::tried, .device_slot = 1, .member = member}).dump();
}
std::string used_again(int member) {
  return to_json({.kind = DeviceSlotChange::Kind::used_again, .device_slot = 1, .member = member}).dump();
}

std::vector<std::string> slot_changes_of(const std::string& scenario) {
  std::vector<std::string> changes;
  for (const ToldStep& step : tell(read_scenario(source_folder() + "/tests/scenarios/" + scenario))) {
    for (const DeviceSlotChange& change : step.device_slot_changes) changes.push_back(to_json(change).dump());
  }
  return changes;
}

TEST(Supervisor, RecordsEachFailedTrialOfADeviceSlot) {
  EXPECT_THAT(
      slot_changes_of("place_fails_its_trial.scenario"),
      ElementsAre(left_out(1, {.failures = 1, .times_left_out = 1, .rest = 60s}), tried(2),
                  left_out(2, {.is_of_a_trial = true, .failures = 2, .times_left_out = 2, .rest = 120s}), tried(3),
                  left_out(3, {.is_of_a_trial = true, .failures = 3, .times_left_out = 3, .rest = 200s}), tried(4),
                  left_out(4, {.is_of_a_trial = true, .failures = 4, .times_left_out = 4, .rest = 200s})));
}

TEST(Supervisor, RecordsWhichMemberHasShownThatADeviceSlotIsWell) {
  EXPECT_THAT(slot_changes_of("place_back_after_its_rest.scenario"),
              ElementsAre(left_out(1, {.failures = 1, .times_left_out = 1, .rest = 60s}), tried(2), used_again(2),
                          left_out(2, {.failures = 1, .times_left_out = 2, .rest = 120s})));
}

// Every reason and action of every scenario.
std::string everything_said() {
  std::string text;
  for (const auto& file : scenario_files()) {
    for (const ToldStep& step : tell(read_scenario(file))) {
      text += step.reason + "\n";
      for (const std::string& action : step.actions) text += action + "\n";
    }
  }
  return text;
}

// The texts in the sources of the supervisor, without placeholders. Each is a branch of its own.
std::set<std::string> sentences_in_the_source() {
  std::ostringstream text;
  for (const char* part : {"supervisor", "run_events", "host_events", "member_events", "failures", "generations"}) {
    std::ifstream file(source_folder() + "/recovery/src/decide/" + part + ".cpp");
    EXPECT_TRUE(file.is_open()) << part;
    text << file.rdbuf();
  }
  const std::string decisions = text.str();
  const std::regex literal("\"([^\"\\\\\\n]*)\"");
  const std::regex filled_in("\\{[^}]*\\}");
  std::set<std::string> sentences;
  for (std::sregex_iterator match(decisions.begin(), decisions.end(), literal), end; match != end; ++match) {
    const bool is_include = match->prefix().str().ends_with("#include ");
    if (is_include) continue;
    const std::string sentence = (*match)[1];
    std::copy(std::sregex_token_iterator(sentence.begin(), sentence.end(), filled_in, -1), std::sregex_token_iterator(),
              std::inserter(sentences, sentences.end()));
  }
  return sentences;
}

TEST(Supervisor, SaysEachOfItsSentencesInSomeScenario) {
  const std::string said = everything_said();
  const std::set<std::string> not_in_scenarios{"gave up: no replica is left"};  // tested below

  std::vector<std::string> missing;
  for (const std::string& sentence : sentences_in_the_source()) {
    if (said.find(sentence) == std::string::npos && !not_in_scenarios.contains(sentence)) missing.push_back(sentence);
  }

  EXPECT_THAT(missing, IsEmpty());
}

TEST(Supervisor, HasAtLeastSixtyScenarios) {
  EXPECT_GE(scenario_files().size(), 60U);
}

TEST(Supervisor, StartsAtTheGivenGeneration) {
  State state = initial_state({.replicas = 1}, 7);
  state = decide(state, {.kind = EventKind::start}, Moment{}).state;

  const Decision decision = decide(state, {.kind = EventKind::ready, .member = 0}, Moment{});

  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(describe(decision.actions[0], Moment{}), "open_generation 7 with 0");
}

// Host 1 of two, each with a replica.
State with_two_hosts() {
  State state = initial_state({.replicas = 2, .device_slots = 2, .hosts = 2, .slot_hosts = {0, 1}}, 0);
  state = decide(state, {.kind = EventKind::start}, Moment{}).state;
  return decide(state, {.kind = EventKind::host_joined, .host = 1}, Moment{}).state;
}

TEST(Supervisor, RemembersSinceWhenAndWhyAHostIsAway) {
  const Event loss{.kind = EventKind::host_lost, .what = "it did not answer", .host = 1};
  const State lost = decide(with_two_hosts(), loss, Moment{} + 5s).state;
  const State back = decide(lost, {.kind = EventKind::host_returned, .host = 1}, Moment{} + 9s).state;

  EXPECT_EQ(lost.hosts.at(1).stage, Host::Stage::lost);
  EXPECT_EQ(lost.hosts.at(1).away_since, Moment{} + 5s);
  EXPECT_EQ(lost.hosts.at(1).why_away, "it did not answer");
  EXPECT_FALSE(lost.hosts.at(1).was_asked_to_leave);
  EXPECT_EQ(back.hosts.at(1).stage, Host::Stage::there);
  EXPECT_EQ(back.hosts.at(1).why_away, "");
}

TEST(Supervisor, DoesNotCallAHostLostThatWasAskedToLeave) {
  const Event leave{.kind = EventKind::host_leaving, .signal = 15, .host = 1};
  const State leaving = decide(with_two_hosts(), leave, Moment{} + 5s).state;
  const Event loss{.kind = EventKind::host_lost, .what = "the connection was closed", .host = 1};
  const State left = decide(leaving, loss, Moment{} + 6s).state;

  EXPECT_EQ(leaving.hosts.at(1).stage, Host::Stage::leaving);
  EXPECT_EQ(left.hosts.at(1).stage, Host::Stage::lost);
  EXPECT_TRUE(left.hosts.at(1).was_asked_to_leave);
  EXPECT_EQ(left.hosts.at(1).away_since, Moment{} + 5s);
  EXPECT_EQ(left.hosts.at(1).why_away, "");
}

TEST(Supervisor, DoesNotChangeTheGivenState) {
  const State state = initial_state({.replicas = 2}, 0);

  static_cast<void>(decide(state, {.kind = EventKind::start}, Moment{}));

  EXPECT_EQ(state.phase, RunPhase::idle);
  EXPECT_THAT(state.members, IsEmpty());
}

TEST(Supervisor, RecordsWhenAFailureWasDetectedAndNotWhenTheProcessWasGone) {
  const Moment detected = Moment{} + std::chrono::seconds(5);
  State state = initial_state({.replicas = 1}, 0);
  state = decide(state, {.kind = EventKind::start}, Moment{}).state;
  state = decide(state, {.kind = EventKind::died, .member = 0}, detected).state;

  const Decision decision =
      decide(state, {.kind = EventKind::exited, .member = 0, .signal = 9}, detected + std::chrono::seconds(1));

  ASSERT_FALSE(decision.actions.empty());
  EXPECT_EQ(decision.actions[0].kind, ActionKind::record_failure);
  EXPECT_EQ(decision.actions[0].moment, detected);
}

TEST(Supervisor, RecordsWhichGenerationEndedAndInWhichStep) {
  State state = initial_state({.replicas = 1}, 3);
  state = decide(state, {.kind = EventKind::start}, Moment{}).state;
  state = decide(state, {.kind = EventKind::ready, .member = 0}, Moment{}).state;

  const Decision decision =
      decide(state, {.kind = EventKind::failure_reported, .member = 0, .what = "out of memory", .step = 812}, Moment{});

  const auto record = std::find_if(decision.actions.begin(), decision.actions.end(),
                                   [](const Action& action) { return action.kind == ActionKind::record_failure; });
  ASSERT_NE(record, decision.actions.end());
  EXPECT_EQ(record->generation, 3);
  EXPECT_EQ(record->rank, 0);
  EXPECT_EQ(record->step, 812);
}

// No known sequence of events leads to this state. If one does, the run must end instead of waiting without end.
TEST(Supervisor, EndsARunWithoutReplicas) {
  State state = initial_state({.replicas = 1}, 0);
  state.phase = RunPhase::gathering;
  state.members.push_back({.id = 0, .stage = Stage::leaving});

  const Decision decision = decide(state, {.kind = EventKind::exited, .member = 0, .signal = 9}, Moment{});

  ASSERT_FALSE(decision.actions.empty());
  EXPECT_EQ(describe(decision.actions.back(), Moment{}), "finish 70: gave up: no replica is left");
}

}  // namespace
}  // namespace holdfast::recovery
