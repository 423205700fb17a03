#include "links/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

HostAddress address(const std::string& text) {
  return parse_host_address(text, "--head");
}

TEST(HostAddress, HasTheUsualPortWhereNoneIsGiven) {
  EXPECT_EQ(address("node7"), (HostAddress{"node7", 29400}));
  EXPECT_EQ(address("10.0.0.7"), (HostAddress{"10.0.0.7", 29400}));
  EXPECT_EQ(address("fd00::7"), (HostAddress{"fd00::7", 29400}));
  EXPECT_EQ(address("[fe80::7%eth0]"), (HostAddress{"fe80::7%eth0", 29400}));
}

TEST(HostAddress, TakesAPortAfterAColon) {
  EXPECT_EQ(address("node7.example:1"), (HostAddress{"node7.example", 1}));
  EXPECT_EQ(address("10.0.0.7:65535"), (HostAddress{"10.0.0.7", 65535}));
  EXPECT_EQ(address("[fd00::7]:29401"), (HostAddress{"fd00::7", 29401}));
}

TEST(HostAddress, RefusesOtherTextAndSaysWhereItWasGiven) {
  for (const char* text : {"", ":29400", "a:", "a:0", "a:65536", "a:x", "a b", "[fd00::7", "[]:1", "[fd00::7]1",
                           "[a]:", "a/b", "http://a:80"}) {
    EXPECT_THAT(complaint_about([&] { address(text); }), HasSubstr("--head is \"" + std::string(text) + "\"")) << text;
  }
  EXPECT_THAT(complaint_about([] { address(std::string(254, 'a')); }), HasSubstr("HOST:PORT is expected"));
}

TEST(HostAddress, IsThatOfAPeerWithoutItsPort) {
  EXPECT_EQ(address_of_peer("10.0.0.7:41234"), "10.0.0.7");
  EXPECT_EQ(address_of_peer("::ffff:10.0.0.7:41234"), "10.0.0.7");
  EXPECT_EQ(address_of_peer("fd00::7:41234"), "fd00::7");
}

TEST(HostAddress, IsReadAgainAsItIsWritten) {
  for (const char* text : {"node7:29400", "10.0.0.7:1", "[fd00::7]:29401"}) {
    EXPECT_EQ(to_string(address(text)), text);
  }
}

}  // namespace
}  // namespace holdfast::recovery
