// What a check of hosts refuses before it begins. That it works between processes: tests/integration/hosts.

#include "holdfast/recovery/check_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

TEST(CheckHosts, NeedsSeveralHosts) {
  EXPECT_THAT(complaint_about([] { check_hosts({.hosts = {.nnodes = 1}}); }),
              HasSubstr("nothing says that there are several hosts; give --nnodes"));
}

TEST(CheckHosts, NeedsASecret) {
  const HostFlags flags{.nnodes = 2, .node_rank = 1, .head = "127.0.0.1:1"};

  EXPECT_THAT(complaint_about([&] { check_hosts({.hosts = flags}); }), HasSubstr("they share no secret"));
}

}  // namespace
}  // namespace holdfast::recovery
