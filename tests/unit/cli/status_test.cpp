#include "status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;

class StatusTest : public testing::CommandTest {};

TEST_F(StatusTest, ShowsARowForEachProcess) {
  const nlohmann::json member = {{"rank", 1},
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
  nlohmann::json spare = member;
  spare["rank"] = nullptr;
  spare["step"] = -1;
  spare["stage"] = "ready";
  const nlohmann::json status = {
      {"phase", "running"},        {"generation", 3},           {"target", 2}, {"step", 120}, {"restarts", 2},
      {"samples_per_second", 512}, {"members", {member, spare}}};

  EXPECT_EQ(describe_status(status),
            "running, generation 3, 2 replicas wanted, step 120, 512.0 samples/s, 2 restarts\n"
            "RANK  PROCESS  PLACE   PID  STAGE     PHASE      STEP   BEAT  SAMPLES/S   MEMORY  RESTARTS\n"
            "   1        4      1  4711  training  computing   120  0.2 s      512.0  100 MiB         2\n"
            "   -        4      1  4711  ready     computing     -  0.2 s      512.0  100 MiB         2\n");
}

TEST_F(StatusTest, SaysThatNoRunIsLive) {
  for (const char* command : {"status", "snapshot"}) {
    EXPECT_EQ(run({command, "/nowhere"}), 2);
    EXPECT_THAT(problems(), HasSubstr("no run is live in /nowhere"));
  }
  EXPECT_EQ(run({"scale", "/nowhere", "2"}), 2);
  EXPECT_THAT(problems(), HasSubstr("no run is live in /nowhere"));
}

}  // namespace
}  // namespace holdfast::cli
