// Which events of the driver replace replicas, leave device slots out, or are only recorded. No driver is needed.

#include "gpu/device_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DeviceEventsTest : public testing::Test {
 protected:
  DeviceEventsTest() {
    // A replica on each of the first two slots, a spare on the second, and a replica that is killed.
    for (const auto& [id, place, stage] : {std::tuple(0, 0, Stage::training), std::tuple(1, 1, Stage::training),
                                           std::tuple(2, 1, Stage::ready), std::tuple(3, 1, Stage::failed)}) {
      state_.members.push_back({.id = id, .device_slot = place, .stage = stage});
    }
    state_.next_member = 4;
  }

  // "place_lost 1", "device_failed 2": the events that follow.
  std::vector<std::string> take(const GpuEvent& event) {
    std::vector<std::string> said;
    for (const Event& follows : events_.take(event, state_, now_)) {
      EXPECT_NE(follows.what, "");
      const bool is_of_a_place = follows.kind == EventKind::device_slot_lost;
      said.push_back(std::string(to_string(follows.kind)) + " " +
                     std::to_string(is_of_a_place ? follows.device_slot : follows.member));
    }
    return said;
  }
  std::vector<std::string> take_xid(int cuda_number, int xid) {
    return take({.kind = GpuEvent::Kind::xid, .cuda_number = cuda_number, .xid = xid});
  }

  std::vector<Json> lines() const {
    std::vector<Json> lines;
    std::ifstream file(folder_ / "journal.jsonl");
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  const TemporaryFolder folder_;
  Journal journal_{folder_ / "journal.jsonl"};
  State state_ = initial_state({.replicas = 2, .device_slots = 3}, 0);
  Moment now_{};
  DeviceEvents events_{{"cuda:0", "cuda:4", "cpu:0"}, 1, journal_};
};

TEST_F(DeviceEventsTest, WatchesEachCudaDeviceOnce) {
  EXPECT_THAT(events_.cuda_numbers(), ElementsAre(0, 4));
  EXPECT_THAT(DeviceEvents({"cuda:1", "cuda:1", "cuda:", "cuda:x", "cuda:2x", "gpu:3"}, 1, journal_).cuda_numbers(),
              ElementsAre(1));
  EXPECT_THAT(DeviceEvents({}, 1, journal_).cuda_numbers(), IsEmpty());
}

TEST_F(DeviceEventsTest, OnlyRecordsErrorsThatAProcessMayCause) {
  EXPECT_THAT(take_xid(4, 31), IsEmpty());

  ASSERT_THAT(lines(), SizeIs(1));
  EXPECT_EQ(lines()[0]["event"], "device_event");
  EXPECT_EQ(lines()[0]["device"], "cuda:4");
  EXPECT_EQ(lines()[0]["xid"], 31);
  EXPECT_EQ(lines()[0]["action"], "report");
  EXPECT_EQ(lines()[0]["what"], "cuda:4: Xid 31, a kernel used memory that is not there");
}

TEST_F(DeviceEventsTest, ReplacesReplicasOnADeviceWhoseMemoryFailed) {
  EXPECT_THAT(take_xid(4, 48), ElementsAre("device_failed 1", "device_failed 2"));
  EXPECT_THAT(take({.kind = GpuEvent::Kind::memory_error, .cuda_number = 0}), ElementsAre("device_failed 0"));
}

TEST_F(DeviceEventsTest, LeavesOutALostDeviceBeforeItReplacesReplicas) {
  EXPECT_THAT(take_xid(4, 79), ElementsAre("place_lost 1", "device_failed 1", "device_failed 2"));
  EXPECT_THAT(take({.kind = GpuEvent::Kind::lost, .cuda_number = 0}), ElementsAre("place_lost 0", "device_failed 0"));
}

TEST_F(DeviceEventsTest, ConcernsAllSlotsOfADevice) {
  DeviceEvents events({"cuda:0", "cuda:0", "cuda:1"}, 1, journal_);

  const std::vector<Event> follow = events.take({.kind = GpuEvent::Kind::lost, .cuda_number = 0}, state_, now_);

  ASSERT_THAT(follow, SizeIs(5));
  EXPECT_EQ(follow[0].device_slot, 0);
  EXPECT_EQ(follow[1].device_slot, 1);
  EXPECT_EQ(follow[4].member, 2);
}

// Members 1 and 2 are on the second host, whose device has the same name.
TEST_F(DeviceEventsTest, ConcernsSlotsOfTheFirstHostAlone) {
  DeviceEvents events({"cuda:0", "cuda:0", "cuda:1", "cuda:1"}, 2, journal_);

  const std::vector<Event> follow = events.take({.kind = GpuEvent::Kind::lost, .cuda_number = 0}, state_, now_);

  EXPECT_THAT(events.cuda_numbers(), ElementsAre(0, 1));
  ASSERT_THAT(follow, SizeIs(2));
  EXPECT_EQ(follow[0].device_slot, 0);
  EXPECT_EQ(follow[1].member, 0);
}

TEST_F(DeviceEventsTest, SparesProcessesStartedSinceAnErrorThatIsReportedAgain) {
  take_xid(4, 48);
  state_.members.push_back({.id = 4, .device_slot = 1, .stage = Stage::starting});
  state_.next_member = 5;
  now_ += 4s;

  EXPECT_THAT(take_xid(4, 94), ElementsAre("device_failed 1", "device_failed 2"));
  EXPECT_THAT(take_xid(0, 94), ElementsAre("device_failed 0"));
  now_ += 1s;
  EXPECT_THAT(take_xid(4, 94), ElementsAre("device_failed 1", "device_failed 2", "device_failed 4"));
}

TEST_F(DeviceEventsTest, ReplacesAllReplicasOnADeviceThatNeedsAReset) {
  take_xid(4, 48);
  state_.members.push_back({.id = 4, .device_slot = 1, .stage = Stage::starting});
  state_.next_member = 5;

  EXPECT_THAT(take_xid(4, 95), ElementsAre("place_lost 1", "device_failed 1", "device_failed 2", "device_failed 4"));
}

TEST_F(DeviceEventsTest, LimitsTheRecordedEventsOfADevice) {
  for (int i = 0; i < DeviceEvents::kMostLines + 10; ++i) take_xid(4, 79);
  take_xid(0, 45);

  ASSERT_THAT(lines(), SizeIs(DeviceEvents::kMostLines + 1));
  EXPECT_THAT(lines()[DeviceEvents::kMostLines - 1]["what"], HasSubstr("nothing is written down but what is done"));
  EXPECT_EQ(lines().back()["device"], "cuda:0");
  EXPECT_THAT(take_xid(4, 79), SizeIs(3)) << "it is not written down, and done all the same";
}

TEST_F(DeviceEventsTest, DescribesTheNewestOfEachDevice) {
  take_xid(4, 31);
  take_xid(4, 45);
  now_ += 3s;

  const Json list = events_.describe(now_);

  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["device"], "cuda:4");
  EXPECT_EQ(list[0]["count"], 2);
  EXPECT_EQ(list[0]["seconds_ago"], 3);
  EXPECT_THAT(list[0]["what"], HasSubstr("Xid 45"));
}

TEST_F(DeviceEventsTest, RecordsWhichDevicesAreWatchedOrWhyNone) {
  events_.watched({{.cuda_number = 4, .facts = {.index = 5, .name = "NVIDIA H200", .uuid = "GPU-5"}}});
  events_.unwatched("there is no driver");

  EXPECT_EQ(lines().at(0)["event"], "devices_watched");
  EXPECT_EQ(lines().at(0)["devices"][0]["device"], "cuda:4");
  EXPECT_EQ(lines().at(0)["devices"][0]["uuid"], "GPU-5");
  EXPECT_EQ(lines().at(1)["event"], "devices_unwatched");
  EXPECT_THAT(lines().at(1)["what"], HasSubstr("there is no driver"));
}

}  // namespace
}  // namespace holdfast::recovery
