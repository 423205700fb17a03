// What `holdfast scale` and `holdfast snapshot` print, for answers of a watchdog that the tests make up.

#include "live_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;

TEST(LiveRun, TellsWhatTheWatchdogAnswered) {
  EXPECT_EQ(describe_scale("/r", {{"ok", true}, {"target", 3}}),
            "/r: 3 replicas from the next step at which all are ready\n");
  EXPECT_EQ(describe_snapshot("/r", {{"ok", true}, {"path", "/r/a.h5"}, {"step", 7}}), "/r/a.h5: durable, step 7\n");
}

// A JSON exception ended the command without a sentence.
TEST(LiveRun, RefusesAnAnswerThatLacksAPartInASentence) {
  const auto refused = [](auto describe, const nlohmann::json& answer) {
    try {
      describe("/r", answer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_THAT(refused(describe_scale, {{"ok", true}}), HasSubstr("the watchdog of /r gave an answer"));
  EXPECT_THAT(refused(describe_scale, {{"ok", true}, {"target", "many"}}), HasSubstr("another version of Holdfast"));
  EXPECT_THAT(refused(describe_snapshot, {{"ok", true}, {"path", "/r/a.h5"}}), HasSubstr("{\"ok\":true"));
  EXPECT_THAT(refused(describe_snapshot, {{"ok", true}, {"path", 1}, {"step", 2}}), HasSubstr("does not understand"));
}

}  // namespace
}  // namespace holdfast::cli
