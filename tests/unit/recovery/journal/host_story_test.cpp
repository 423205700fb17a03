// The report's part about hosts, from lines of a journal.

#include "journal/host_story.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;

class HostStoryTest : public testing::Test {
 protected:
  void take(double time, const std::string& event, int host, const std::string& what = "") {
    Json line{{"event", event}, {"host", host}};
    if (!what.empty()) line["what"] = what;
    story_.take_decision(event, time, line);
  }

  const std::vector<RunReport::Absence>& absences() const { return story_.absences(); }

  HostStory story_;
};

TEST_F(HostStoryTest, FollowsALostHostUntilItIsBack) {
  take(1, "host_joined", 1);
  take(2, "host_joined", 2);
  take(10, "host_lost", 2, "it did not answer");
  take(11, "fence_passed", 2);
  take(30, "host_returned", 2);

  ASSERT_EQ(absences().size(), 1U);
  EXPECT_EQ(absences()[0].host, 2);
  EXPECT_EQ(absences()[0].began, 10);
  EXPECT_FALSE(absences()[0].was_asked);
  EXPECT_EQ(absences()[0].why, "it did not answer");
  EXPECT_EQ(absences()[0].returned, 30);
}

TEST_F(HostStoryTest, TellsEachLossOfAHost) {
  take(1, "host_joined", 1);
  for (const double time : {10., 20.}) {
    take(time, "host_lost", 1, "the connection was closed");
    take(time + 5, "host_returned", 1);
  }

  ASSERT_EQ(absences().size(), 2U);
  EXPECT_EQ(absences()[0].returned, 15);
  EXPECT_EQ(absences()[1].began, 20);
  EXPECT_EQ(absences()[1].returned, 25);
}

TEST_F(HostStoryTest, DoesNotTakeTheEndOfAHostThatLeavesForAnotherLoss) {
  take(1, "host_joined", 1);
  take(10, "host_leaving", 1);
  take(11, "host_lost", 1, "the connection was closed");

  ASSERT_EQ(absences().size(), 1U);
  EXPECT_EQ(absences()[0].began, 10);
  EXPECT_TRUE(absences()[0].was_asked);
  EXPECT_EQ(absences()[0].why, "");
  EXPECT_FALSE(absences()[0].returned.has_value());
}

TEST_F(HostStoryTest, DoesNotMissAHostThatNeverJoined) {
  take(1, "host_lost", 1, "the connection was closed");

  EXPECT_TRUE(absences().empty());
}

TEST_F(HostStoryTest, DoesNotTakeAJoinOfALaterStartForAReturn) {
  take(1, "host_joined", 1);
  take(10, "host_lost", 1, "it did not answer");
  story_.begin_start();
  take(20, "host_joined", 1);

  ASSERT_EQ(absences().size(), 1U);
  EXPECT_FALSE(absences()[0].returned.has_value());
}

TEST_F(HostStoryTest, IsWrittenAsJsonWithNullForAHostThatIsNotBack) {
  const Json json = to_json(RunReport::Absence{.host = 3, .began = 10, .why = "it did not answer"});

  EXPECT_EQ(json, Json::parse(R"({"host": 3, "began": 10.0, "was_asked": false, "why": "it did not answer",
                                  "returned": null})"));
}

}  // namespace
}  // namespace holdfast::recovery
