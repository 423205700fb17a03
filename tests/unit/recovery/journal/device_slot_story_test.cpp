// The report's part about device slots, from lines of a journal.

#include "journal/device_slot_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "decide/device_slot_changes.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::IsEmpty;
using Kind = DeviceSlotChange::Kind;

class DeviceSlotStoryTest : public testing::Test {
 protected:
  void change(double time, const DeviceSlotChange& change, int incident = -1) {
    Json line;
    line["places"].push_back(to_json(change));
    story_.take_decision(time, line, incident);
  }
  void leave_out(double time, int slot, int times, int incident) {
    change(time, {.device_slot = slot, .member = 9, .failures = 3, .times_left_out = times, .rest = 600s}, incident);
  }

  const std::vector<RunReport::Rest>& rests() const { return story_.rests(); }

  DeviceSlotStory story_;
};

TEST_F(DeviceSlotStoryTest, FollowsASlotUntilItIsUsedAgain) {
  leave_out(10, 1, 1, 4);
  change(610, {.kind = Kind::tried, .device_slot = 1, .member = 5});
  change(612, {.kind = Kind::used_again, .device_slot = 1, .member = 5});

  ASSERT_EQ(rests().size(), 1U);
  EXPECT_EQ(rests()[0].device_slot, 1);
  EXPECT_EQ(rests()[0].began, 10);
  EXPECT_EQ(rests()[0].seconds, 600);
  EXPECT_FALSE(rests()[0].is_of_a_trial);
  EXPECT_EQ(rests()[0].failures, 3);
  EXPECT_EQ(rests()[0].times_left_out, 1);
  EXPECT_EQ(rests()[0].incident, 4);
  EXPECT_EQ(rests()[0].tried, 610);
  EXPECT_EQ(rests()[0].tried_by, 5);
  EXPECT_EQ(rests()[0].used_again, 612);
  EXPECT_EQ(rests()[0].shown_well_by, 5);
}

TEST_F(DeviceSlotStoryTest, HasTheReportOfTheDriver) {
  change(10, {.device_slot = 1, .times_left_out = 1, .rest = 600s, .device = "cuda:1 is lost"});

  EXPECT_EQ(rests().at(0).device, "cuda:1 is lost");
  EXPECT_EQ(rests().at(0).incident, -1);
  EXPECT_EQ(to_json(rests().at(0)).at("device"), "cuda:1 is lost");
}

TEST_F(DeviceSlotStoryTest, HasEachRest) {
  leave_out(10, 1, 1, 0);
  leave_out(11, 2, 1, 1);
  change(610, {.kind = Kind::tried, .device_slot = 1, .member = 5});
  leave_out(611, 1, 2, 2);
  change(700, {.kind = Kind::tried, .device_slot = 1, .member = 6});

  ASSERT_EQ(rests().size(), 3U);
  EXPECT_EQ(rests()[0].tried_by, 5);
  EXPECT_FALSE(rests()[0].used_again.has_value());
  EXPECT_FALSE(rests()[1].tried.has_value());
  EXPECT_EQ(rests()[2].times_left_out, 2);
  EXPECT_EQ(rests()[2].tried_by, 6);
}

TEST_F(DeviceSlotStoryTest, StartsAgainWithAnotherWatchdog) {
  leave_out(10, 1, 1, 0);
  story_.begin_start();
  change(20, {.kind = Kind::tried, .device_slot = 1, .member = 5});

  EXPECT_FALSE(rests().at(0).tried.has_value());
}

TEST_F(DeviceSlotStoryTest, IgnoresALineWithoutSlots) {
  story_.take_decision(1, {{"event", "ready"}}, -1);

  EXPECT_THAT(rests(), IsEmpty());
}

TEST_F(DeviceSlotStoryTest, RefusesAnUnknownChange) {
  EXPECT_THROW(story_.take_decision(1, {{"places", {{{"change", "painted"}, {"place", 1}, {"member", 2}}}}}, -1),
               Error);
}

TEST_F(DeviceSlotStoryTest, IsWrittenAsJsonWithNullsForWhatIsNotKnown) {
  leave_out(10, 1, 1, -1);

  const Json body = to_json(rests().at(0));

  EXPECT_EQ(body.at("place"), 1);
  EXPECT_TRUE(body.at("incident").is_null());
  EXPECT_TRUE(body.at("device").is_null());
  EXPECT_TRUE(body.at("tried").is_null());
  EXPECT_TRUE(body.at("tried_by").is_null());
}

}  // namespace
}  // namespace holdfast::recovery
