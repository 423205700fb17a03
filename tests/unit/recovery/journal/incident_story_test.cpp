// The lines that a user reads about failures. Each test plays events to the real supervisor and compares the exact
// lines, since they must read well and must not repeat a cause.

#include "journal/incident_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/folders.h"
#include "unit/recovery/support/scenario.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A run that the real supervisor decides about, and the lines that the user reads.
class Told {
 public:
  explicit Told(const SupervisorPolicy& policy, bool tells_steps = true)
      : state_(initial_state(policy, 0)), story_(tells_steps) {
    happens(0s, {.kind = EventKind::start});
    for (int member = 0; member < policy.replicas; ++member) intended_.push_back(member);
  }

  void all_get_ready() {
    for (int member = 0; member < static_cast<int>(intended_.size()); ++member) {
      happens(1s, {.kind = EventKind::ready, .member = member});
    }
  }

  // `at` is the time since the beginning of the run.
  void happens(Moment::duration at, Event event) {
    const Moment now = Moment{} + at;
    if (event.generation < 0) event.generation = state_.generation;
    const Member* member = find_member(state_, event.member);
    int rank = member == nullptr ? -1 : member->rank;
    if (rank < 0 && event.member < static_cast<int>(intended_.size())) rank = intended_[event.member];
    const Decision decision = decide(state_, event, now);
    state_ = decision.state;
    add(story_.take(event, rank, decision, now));
    for (const Action& action : decision.actions) {
      if (action.kind != ActionKind::finish) continue;
      add(story_.end(*state_.ending));
      sentence = story_.last_sentence(*state_.ending);
    }
  }
  void looked_at(Moment::duration at) { add(story_.look(Moment{} + at)); }
  // The rank for which a later process is started.
  void intend(int member, int rank) {
    intended_.resize(std::max<std::size_t>(intended_.size(), member + 1), -1);
    intended_[member] = rank;
  }

  std::vector<std::string> lines;
  std::string sentence;  // the last one of the run

 private:
  void add(const std::vector<IncidentStory::Line>& added) {
    for (const IncidentStory::Line& line : added) lines.push_back(std::string(name(line.level)) + " " + line.text);
  }

  State state_;
  IncidentStory story_;
  std::vector<int> intended_;
};

Event died(int member, std::int64_t step) {
  return {.kind = EventKind::died, .member = member, .step = step};
}
Event killed(int member, int signal, std::int64_t step = -1) {
  return {.kind = EventKind::exited, .member = member, .signal = signal, .step = step};
}
Event threw(int member, std::int64_t step = -1) {
  return {.kind = EventKind::failure_reported, .member = member, .what = "no cat", .is_thrown = true, .step = step};
}
Event left(int member) {
  return {.kind = EventKind::exited, .member = member, .exit_code = 1};
}
Event checked_in(int member) {
  return {.kind = EventKind::checked_in, .member = member, .step = 40};
}
Event progressed(std::int64_t step) {
  return {.kind = EventKind::progressed, .step = step};
}

}  // namespace

TEST(IncidentStory, SaysNothingAboutARunWithoutIncidents) {
  Told told({.replicas = 2});

  told.all_get_ready();
  told.happens(2s, progressed(1));
  told.happens(3s, {.kind = EventKind::finished, .member = 0});
  told.happens(3s, {.kind = EventKind::finished, .member = 1});
  told.happens(4s, {.kind = EventKind::exited, .member = 0});
  told.happens(4s, {.kind = EventKind::exited, .member = 1});

  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_EQ(told.sentence, "finished");
}

// A death used to make 10 to 17 lines of the log, in words that only the watchdog uses.
TEST(IncidentStory, TellsTheDeathOfAReplicaInOneLine) {
  Told told({.replicas = 3});
  told.all_get_ready();

  told.happens(9s, died(1, 40));
  told.happens(9010ms, checked_in(0));
  told.happens(9010ms, checked_in(2));
  told.happens(9050ms, killed(1, 9, 40));
  told.happens(9100ms, progressed(41));
  told.looked_at(30s);

  EXPECT_THAT(told.lines,
              ElementsAre("warning replica 1 was killed by signal 9 (SIGKILL) in step 40; training went on "
                          "with the other 2 replicas at step 41 after 0.1 s; a new process joins when it is "
                          "ready"));
}

TEST(IncidentStory, WaitsForTheKernelToSayHowAReplicaEnded) {
  Told told({.replicas = 2});
  told.all_get_ready();

  told.happens(9s, died(1, 40));
  told.happens(9010ms, checked_in(0));
  told.happens(9100ms, progressed(41));
  EXPECT_THAT(told.lines, IsEmpty());
  told.happens(9200ms, killed(1, 11, 40));

  EXPECT_THAT(told.lines,
              ElementsAre("warning replica 1 was killed by signal 11 (SIGSEGV) in step 40; training went on with the "
                          "other replica at step 41 after 0.1 s; a new process joins when it is ready"));
}

TEST(IncidentStory, TellsDeathsAtTheSameTimeInOneLine) {
  Told told({.replicas = 2});
  told.all_get_ready();

  told.happens(9s, died(0, 40));
  told.happens(9s, died(1, 40));
  told.happens(9100ms, killed(0, 9));
  told.happens(9100ms, killed(1, 9));
  told.happens(10s, {.kind = EventKind::ready, .member = 2});
  told.happens(10s, {.kind = EventKind::ready, .member = 3});
  told.happens(11s, progressed(41));

  EXPECT_THAT(told.lines,
              ElementsAre("warning both replicas were killed by signal 9 (SIGKILL) in step 40; training went "
                          "on with 2 replicas at step 41 after 2.0 s"));
}

TEST(IncidentStory, SaysThatTrainingWaitsWhenThatTakesLong) {
  Told told({.replicas = 1});
  told.all_get_ready();

  told.happens(10s, killed(0, 9, 40));
  told.looked_at(14900ms);
  EXPECT_THAT(told.lines, IsEmpty());
  told.looked_at(15s);
  told.looked_at(16s);
  told.happens(30s, {.kind = EventKind::ready, .member = 1});
  told.happens(31s, progressed(41));

  EXPECT_THAT(told.lines,
              ElementsAre("warning replica 0 was killed by signal 9 (SIGKILL) in step 40; training waits for "
                          "a new process",
                          "info training went on with 1 replica at step 41 after 21.0 s"));
}

TEST(IncidentStory, TellsAHangAndTheLossOfANewcomer) {
  Told told({.replicas = 2});
  told.all_get_ready();
  told.happens(9s, {.kind = EventKind::hang_detected, .member = 1, .what = "no progress for 9.0 s", .step = 7});
  told.happens(9010ms, checked_in(0));
  told.happens(9100ms, progressed(41));
  told.intend(2, 1);

  told.happens(12s, {.kind = EventKind::exited, .member = 2, .exit_code = 3});

  EXPECT_THAT(told.lines,
              ElementsAre("warning replica 1 hung in step 7: no progress for 9.0 s; training went on with the other "
                          "replica at step 41 after 0.1 s; a new process joins when it is ready",
                          "warning a process that was to become replica 1 exited with code 3; the others go on"));
}

// The cause used to appear three times, and the user's words came last.
TEST(IncidentStory, TellsAnExceptionThatEndsARunInTheLastSentenceAlone) {
  Told told({.replicas = 2});
  for (const int first : {0, 2, 4}) {
    told.intend(first, 0);
    told.intend(first + 1, 1);
    const Moment::duration at = 1s * (first + 1);
    told.happens(at, threw(first));
    told.happens(at, left(first));
    told.happens(at, threw(first + 1));
    told.happens(at, left(first + 1));
    told.happens(at + 900ms, {.kind = EventKind::timer});
  }
  told.happens(9s, killed(6, 9));

  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_EQ(told.sentence, "training ended: no cat (thrown by the training function in both replicas, three times)");
}

// A batch that needs more memory than there is started anew without an end in sight, and nothing named memory.
TEST(IncidentStory, SaysWhatAKillOfEachStartMayMean) {
  Told told({.replicas = 1});
  for (const int first : {0, 1, 2, 3, 4}) {
    told.intend(first, 0);
    const Moment::duration at = 10s * (first + 1);
    told.happens(at, killed(first, 9));
    told.happens(at + 5s, {.kind = EventKind::timer});
  }

  EXPECT_EQ(told.sentence,
            "training ended: replica 0 was killed by signal 9 (SIGKILL) (5 times; Linux sends SIGKILL where memory "
            "runs out (see dmesg): take a smaller batch or fewer replicas)");
}

TEST(IncidentStory, SaysThatOneStepFailedRepeatedly) {
  Told told({.replicas = 1});
  told.all_get_ready();
  told.happens(2s, threw(0, 812));
  told.happens(2s, left(0));
  told.happens(3s, {.kind = EventKind::ready, .member = 1});
  told.happens(4s, threw(1, 812));
  told.happens(4s, left(1));
  told.happens(4100ms, {.kind = EventKind::timer});
  told.happens(5s, {.kind = EventKind::ready, .member = 2});
  told.happens(6s, threw(2, 812));
  told.happens(6s, left(2));

  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_EQ(told.sentence,
            "training ended: no cat (thrown by the training function in replica 0; gave up "
            "at step 812, which failed 3 times in different processes)");
}

TEST(IncidentStory, NamesTheSignalThatEndsARun) {
  Told told({.recovery = {.max_restarts = 0}, .replicas = 1});
  told.all_get_ready();

  told.happens(2s, died(0, 7));
  told.happens(3s, killed(0, 11, 7));

  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_EQ(told.sentence,
            "training ended: replica 0 was killed by signal 11 (SIGSEGV) in step 7 (gave up after 0 "
            "restarts within 600.0 s, the limit of max_restarts and restart_window)");
}

// The parts of a sentence were found by its words, and a program may say the same words.
TEST(IncidentStory, IsNotMisledByTheWordsOfACause) {
  Told told({.recovery = {.max_restarts = 0}, .replicas = 1});
  told.all_get_ready();

  told.happens(2s, {.kind = EventKind::failure_reported,
                    .member = 0,
                    .what = "killed by signal: x; the last failure was slow",
                    .is_thrown = true,
                    .step = 7});
  told.happens(2s, left(0));

  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_EQ(told.sentence,
            "training ended: killed by signal: x; the last failure was slow (thrown by the training function in "
            "replica 0; gave up after 0 restarts within 600.0 s, the limit of max_restarts and restart_window)");
}

// That one of the others cannot be killed was missing in the last sentence.
TEST(IncidentStory, SaysBothWhyARunEndsAndWhichProcessIsLeft) {
  Told told({.recovery = {.max_restarts = 0}, .replicas = 2});
  told.all_get_ready();

  told.happens(9s, {.kind = EventKind::hang_detected, .member = 1, .what = "no progress for 9.0 s", .step = 7});
  told.happens(9100ms, killed(1, 9, 7));
  told.happens(100s, {.kind = EventKind::timer});

  EXPECT_THAT(told.lines, ElementsAre("warning replica 1 hung in step 7: no progress for 9.0 s; training waits for the "
                                      "others"));
  EXPECT_EQ(told.sentence,
            "training ended: replica 1 hung in step 7: no progress for 9.0 s (gave up: process 0 (replica 0) did not "
            "end within 30.0 s of SIGKILL; before that: gave up after 0 restarts within 600.0 s, the limit of "
            "max_restarts and restart_window)");
}

TEST(IncidentStory, TellsAnotherFailureBeforeTheOneThatEndsTheRun) {
  Told told({.replicas = 2});
  told.all_get_ready();
  told.happens(2s, killed(1, 9, 7));
  told.happens(2010ms, checked_in(0));

  told.happens(2020ms, {.kind = EventKind::failure_reported,
                        .member = 0,
                        .what = "cannot open \"x\"",
                        .is_unrecoverable = true,
                        .step = 7});
  told.happens(2030ms, left(0));
  told.happens(2030ms, killed(2, 9));

  EXPECT_THAT(told.lines, ElementsAre("warning replica 1 was killed by signal 9 (SIGKILL) in step 7"));
  EXPECT_EQ(told.sentence, "training ended: cannot open \"x\" (in replica 0)");
}

TEST(IncidentStory, KeepsTheSentenceOfAStop) {
  Told told({.replicas = 1});
  told.all_get_ready();

  told.happens(2s, {.kind = EventKind::stop_requested, .signal = 15});
  told.happens(3s, {.kind = EventKind::exited, .member = 0, .exit_code = 75});

  EXPECT_THAT(told.lines, IsEmpty());
  EXPECT_EQ(told.sentence, "stopped as asked; start the same command again to go on");
}

TEST(IncidentStory, TellsAPlainProgramsFailureOnceAllRunAgain) {
  Told told({.replicas = 1, .keep_survivors = false, .all_start_together = true}, false);
  told.all_get_ready();

  told.happens(2s, {.kind = EventKind::exited, .member = 0, .exit_code = 3});
  told.happens(3s, {.kind = EventKind::ready, .member = 1});

  EXPECT_THAT(told.lines, ElementsAre("warning replica 0 exited with code 3; training went on with 1 replica after 1.0 "
                                      "s"));
}

// No line of any scenario has a word that only the watchdog uses.
TEST(IncidentStory, UsesOnlyWordsThatUsersKnow) {
  std::size_t lines = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/tests/scenarios")) {
    if (file.path().extension() != ".scenario") continue;
    const Scenario scenario = read_scenario(file.path());
    State state = initial_state(scenario.policy, 0);
    IncidentStory story(!scenario.policy.all_start_together);
    for (const ScenarioStep& step : scenario.steps) {
      Event event = step.event;
      if (!step.has_generation) event.generation = state.generation;
      const Member* member = find_member(state, event.member);
      const Decision decision = decide(state, event, step.moment);
      std::vector<IncidentStory::Line> told =
          story.take(event, member == nullptr || member->rank < 0 ? 0 : member->rank, decision, step.moment);
      state = decision.state;
      for (const Action& action : decision.actions) {
        if (action.kind != ActionKind::finish) continue;
        const auto last = story.end(*state.ending);
        told.insert(told.end(), last.begin(), last.end());
      }
      for (const IncidentStory::Line& line : told) {
        ++lines;
        for (const char* word : {"dismissed", "regroup", "successor", "member", "checked in", "process 0"}) {
          EXPECT_THAT(line.text, Not(HasSubstr(word))) << file.path();
        }
        EXPECT_EQ(std::count(line.text.begin(), line.text.end(), '\n'), 0) << file.path();
      }
    }
  }
  EXPECT_GT(lines, 20U);
}

}  // namespace holdfast::recovery
