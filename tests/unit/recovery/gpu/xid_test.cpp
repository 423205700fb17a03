#include "gpu/xid.h"

#include <gtest/gtest.h>

namespace holdfast::recovery {
namespace {

TEST(Xid, LeavesADeviceOutThatNeedsAReset) {
  for (const int number : {46, 62, 64, 79, 95, 110, 119, 120, 140, 143, 158, 167, 169}) {
    EXPECT_EQ(xid_of(number).action, XidAction::leave_out) << number;
  }
}

TEST(Xid, ReplacesReplicasOnADeviceWhoseMemoryCannotBeTrusted) {
  for (const int number : {48, 94, 109, 171, 172}) EXPECT_EQ(xid_of(number).action, XidAction::replace) << number;
}

// Some of them are caused by a killed process. Its successor is not to blame.
TEST(Xid, OnlyRecordsErrorsOfOneProcess) {
  for (const int number : {8, 13, 31, 32, 43, 45, 69}) EXPECT_EQ(xid_of(number).action, XidAction::report) << number;
}

// Both ends report a broken link. Corrected errors and remapped rows do no harm.
TEST(Xid, BlamesNoDeviceForErrorsThatMayNotBeItsOwn) {
  for (const int number : {61, 63, 74, 92, 137, 154}) EXPECT_EQ(xid_of(number).action, XidAction::report) << number;
}

TEST(Xid, OnlyRecordsUnknownNumbers) {
  const Xid xid = xid_of(999);

  EXPECT_EQ(xid.number, 999);
  EXPECT_EQ(xid.action, XidAction::report);
  EXPECT_EQ(xid.what, "an error that Holdfast does not know");
}

}  // namespace
}  // namespace holdfast::recovery
