// The text of `holdfast status`, for answers of a watchdog that the tests make up.

#include "status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json a_member() {
  return {{"rank", 1},
          {"member", 4},
          {"place", 1},
          {"pid", 4711},
          {"stage", "training"},
          {"phase", "computing"},
          {"step", 120},
          {"seconds_since_progress", 0.25},
          {"samples_per_second", 512.04},
          {"resident_bytes", 104857600},
          {"restarts", 2}};
}

nlohmann::json status_with(const std::vector<nlohmann::json>& members) {
  return {{"phase", "running"}, {"generation", 3},           {"target", 2},       {"step", 120},
          {"restarts", 2},      {"samples_per_second", 512}, {"members", members}};
}

class StatusTest : public testing::CommandTest {};

TEST_F(StatusTest, ShowsARowForEachProcess) {
  const nlohmann::json member = a_member();
  nlohmann::json spare = member;
  spare["rank"] = nullptr;
  spare["step"] = -1;
  spare["stage"] = "ready";

  EXPECT_EQ(describe_status("/r", status_with({member, spare})),
            "running, generation 3, 2 replicas wanted, step 120, 512.0 samples/s, 2 restarts\n"
            "RANK  PROCESS  DEVICE   PID  STAGE     PHASE      STEP   BEAT  SAMPLES/S   MEMORY  RESTARTS\n"
            "   1        4       1  4711  training  computing   120  0.2 s      512.0  100 MiB         2\n"
            "   -        4       1  4711  ready     computing     -  0.2 s      512.0  100 MiB         2\n");
}

TEST_F(StatusTest, ShowsDevicesByTheirNames) {
  nlohmann::json member = a_member();
  member["device"] = "cpu:3";
  nlohmann::json status = status_with({member});
  status["rests"] = nlohmann::json::array({{{"place", 0},
                                            {"device", "cpu:1"},
                                            {"why", "3 processes failed there"},
                                            {"times_left_out", 1},
                                            {"seconds_left", 0.0},
                                            {"tried_by", nullptr}}});

  const std::string text = describe_status("/r", status);

  EXPECT_THAT(text, HasSubstr("   1        4   cpu:3  4711  training"));
  EXPECT_THAT(text, HasSubstr("\ncpu:1 is left out: 3 processes failed there; it is tried again when"));
}

TEST_F(StatusTest, ShowsTheLastDriverEventOfADevice) {
  nlohmann::json status = status_with({a_member()});
  status["device_events"] = nlohmann::json::array({{{"device", "cuda:1"},
                                                    {"what", "Xid 31, a kernel used memory that is not there"},
                                                    {"count", 2},
                                                    {"seconds_ago", 3.2}}});

  EXPECT_THAT(describe_status("/r", status),
              HasSubstr("\ncuda:1 had 2 events, the last 3 s ago: Xid 31, a kernel used memory that is not there\n"));
}

TEST_F(StatusTest, ShowsShardsThatAreAssignedUnevenly) {
  nlohmann::json quick = a_member();
  quick["shards"] = 4;
  nlohmann::json slow = a_member();
  slow["shards"] = 2;
  nlohmann::json spare = a_member();
  spare["shards"] = nullptr;

  EXPECT_THAT(
      describe_status("/r", status_with({quick, slow, spare})),
      HasSubstr(
          "RESTARTS  SHARDS\n"
          "   1        4       1  4711  training  computing   120  0.2 s      512.0  100 MiB         2       4\n"
          "   1        4       1  4711  training  computing   120  0.2 s      512.0  100 MiB         2       2\n"
          "   1        4       1  4711  training  computing   120  0.2 s      512.0  100 MiB         2       -\n"));
  quick["shards"] = 3;
  EXPECT_THAT(describe_status("/r", status_with({quick, slow, spare})), Not(HasSubstr("SHARDS")));
}

TEST_F(StatusTest, ShowsTheHostsOfARunThatHasSeveral) {
  nlohmann::json near = a_member();
  near["host"] = 0;
  nlohmann::json far = a_member();
  far["host"] = 1;
  far["resident_bytes"] = nullptr;
  nlohmann::json status = status_with({near, far});
  const auto add = [&status](const std::string& address, const std::string& stage, const nlohmann::json& seconds,
                             const std::string& why = "", bool was_asked = false) {
    status["hosts"].push_back({{"host", status["hosts"].size()},
                               {"address", address},
                               {"stage", stage},
                               {"seconds_away", seconds},
                               {"why_away", why},
                               {"was_asked_to_leave", was_asked}});
  };
  add("10.0.0.2", "there", nullptr);
  add("10.0.0.3", "lost", 4.25, "it did not answer\n");
  add("10.0.0.4", "lost", 7, "", true);
  add("10.0.0.5", "leaving", 1.5, "", true);
  add("", "awaited", nullptr);

  EXPECT_EQ(describe_status("/r", status),
            "running, generation 3, 2 replicas wanted, step 120, 512.0 samples/s, 2 restarts\n"
            "HOST  ADDRESS   STATE\n"
            "   0  10.0.0.2  part of the run\n"
            "   1  10.0.0.3  lost 4.2 s ago: it did not answer?\n"
            "   2  10.0.0.4  has left, asked 7.0 s ago\n"
            "   3  10.0.0.5  is leaving, asked 1.5 s ago\n"
            "   4  -         has not joined yet\n"
            "\n"
            "RANK  HOST  PROCESS  DEVICE   PID  STAGE     PHASE      STEP   BEAT  SAMPLES/S   MEMORY  RESTARTS\n"
            "   1     0        4       1  4711  training  computing   120  0.2 s      512.0  100 MiB         2\n"
            "   1     1        4       1  4711  training  computing   120  0.2 s      512.0        -         2\n");
}

TEST_F(StatusTest, ShowsDeviceSlotsThatAreLeftOut) {
  nlohmann::json status = status_with({});
  const auto rest = [](int place, double seconds_left, const nlohmann::json& tried_by) {
    return nlohmann::json{{"place", place},
                          {"why", "3 processes failed there"},
                          {"times_left_out", 1},
                          {"seconds_left", seconds_left},
                          {"tried_by", tried_by}};
  };
  status["rests"] = {rest(1, 512.3, nullptr), rest(2, 0, 7), rest(3, 0, nullptr)};

  const std::string text = describe_status("/r", status);

  EXPECT_THAT(text, HasSubstr("device slot 1 is left out: 3 processes failed there; it is tried again in 512 s\n"));
  EXPECT_THAT(text, HasSubstr("device slot 2 is left out: 3 processes failed there; process 7 tries it\n"));
  EXPECT_THAT(text, HasSubstr("device slot 3 is left out: 3 processes failed there; it is tried again when a process "
                              "is missing\n"));
}

TEST_F(StatusTest, SaysThatNoRunIsLive) {
  for (const char* command : {"status", "snapshot"}) {
    EXPECT_EQ(run({command, "/nowhere"}), 2);
    EXPECT_THAT(problems(), HasSubstr("no run is live in /nowhere"));
  }
  EXPECT_EQ(run({"scale", "/nowhere", "2"}), 2);
  EXPECT_THAT(problems(), HasSubstr("no run is live in /nowhere"));
}

// A JSON exception ended the command without a sentence.
TEST_F(StatusTest, RefusesAnAnswerThatLacksAPartInASentence) {
  const nlohmann::json whole = status_with({a_member()});
  std::vector<nlohmann::json> answers = {nlohmann::json{{"ok", true}}};
  for (const auto& [key, value] : whole.items()) {
    answers.push_back(whole);
    answers.back().erase(key);
    answers.push_back(whole);
    answers.back()[key] = nlohmann::json::array({1});
  }
  for (const auto& [key, value] : whole["members"][0].items()) {
    answers.push_back(whole);
    answers.back()["members"][0].erase(key);
  }
  for (const nlohmann::json& answer : answers) {
    try {
      describe_status("/r", answer);
      ADD_FAILURE() << "took " << answer.dump();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("the watchdog of /r gave an answer that this command does not understand"));
    }
  }
}

}  // namespace
}  // namespace holdfast::cli
