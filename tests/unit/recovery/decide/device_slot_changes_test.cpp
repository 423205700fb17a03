#include "decide/device_slot_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;

TEST(DeviceSlotChange, IsReadBackAsItWasWritten) {
  const DeviceSlotChange written{.kind = DeviceSlotChange::Kind::left_out,
                                 .device_slot = 3,
                                 .member = 7,
                                 .is_of_a_trial = true,
                                 .failures = 4,
                                 .times_left_out = 2,
                                 .rest = 1200500ms};

  const DeviceSlotChange read = device_slot_change_from_json(Json::parse(to_json(written).dump()));

  EXPECT_EQ(read.kind, written.kind);
  EXPECT_EQ(read.device_slot, 3);
  EXPECT_EQ(read.member, 7);
  EXPECT_TRUE(read.is_of_a_trial);
  EXPECT_EQ(read.failures, 4);
  EXPECT_EQ(read.times_left_out, 2);
  EXPECT_EQ(read.rest, 1200500ms);
}

TEST(DeviceSlotChange, HasTheReportOfTheDriver) {
  const DeviceSlotChange read =
      device_slot_change_from_json(to_json({.device_slot = 3, .rest = 600s, .device = "cuda:3 is lost"}));

  EXPECT_EQ(read.device, "cuda:3 is lost");
  EXPECT_EQ(read.member, -1);
  EXPECT_EQ(device_slot_change_from_json(to_json({.device_slot = 3, .member = 1})).device, "");
}

TEST(DeviceSlotChange, HasARestOnlyWhenASlotIsLeftOut) {
  for (const auto kind : {DeviceSlotChange::Kind::tried, DeviceSlotChange::Kind::used_again}) {
    const Json written = to_json({.kind = kind, .device_slot = 1, .member = 5});

    EXPECT_EQ(written.size(), 3U) << written;
    EXPECT_EQ(device_slot_change_from_json(written).kind, kind);
  }
}

TEST(DeviceSlotChange, RefusesAnUnknownKindAndNamesIt) {
  try {
    device_slot_change_from_json({{"change", "painted"}, {"place", 1}, {"member", 5}});
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_file);
    EXPECT_THAT(error.what(), HasSubstr("painted"));
  }
  EXPECT_THROW(device_slot_change_from_json({{"change", "tried"}, {"member", 5}}), Json::exception);
}

}  // namespace
}  // namespace holdfast::recovery
