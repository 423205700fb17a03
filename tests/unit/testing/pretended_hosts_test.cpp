#include "pretended_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::resilience {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(PretendedHosts, TellEachHostWhichItIs) {
  const PretendedHosts hosts(3);

  const std::vector<std::string> first = hosts.variables_of(0);
  const std::vector<std::string> last = hosts.variables_of(2);

  ASSERT_THAT(first, SizeIs(4));
  EXPECT_EQ(first[0], "HOLDFAST_NNODES=3");
  EXPECT_EQ(first[1], "HOLDFAST_NODE_RANK=0");
  EXPECT_EQ(last[1], "HOLDFAST_NODE_RANK=2");
  EXPECT_THAT(first[2], StartsWith("HOLDFAST_HEAD=127.0.0.1:"));
  EXPECT_EQ(first[2], last[2]);
  EXPECT_EQ(first[3], last[3]);
}

TEST(PretendedHosts, HaveASecretThatTheirOwnerAloneMayReadAndThatEndsWithThem) {
  const std::string name = "HOLDFAST_SECRET_FILE=";
  std::string path;
  {
    const PretendedHosts hosts(2);
    path = hosts.variables_of(1).at(3).substr(name.size());
    struct stat found {};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 077, 0U);
    EXPECT_EQ(found.st_size, 32);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PretendedHosts, SetNoVariablesIfThereIsOnlyOne) {
  EXPECT_THAT(PretendedHosts(1).variables_of(0), IsEmpty());
  EXPECT_THROW(PretendedHosts(0), Error);
}

}  // namespace
}  // namespace holdfast::resilience
