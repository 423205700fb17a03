// The variables for each situation of a run, and what happens to those that the user has set.

#include "collective/nccl/nccl_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "holdfast/base/log.h"

namespace holdfast {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

// The log's lines meanwhile.
std::string set_and_listen() {
  std::string said;
  set_log_sink([&](LogLevel, std::string_view line) { said += line; });
  set_nccl_environment({.version = 22809});
  set_log_sink({});
  return said;
}

}  // namespace

TEST(NcclEnvironment, KeepsCollectivesOfOneHostOnLoopback) {
  EXPECT_THAT(nccl_environment({.version = 22809}), Contains(Pair("NCCL_SOCKET_IFNAME", "=lo")));
  EXPECT_THAT(nccl_environment({.version = 22809, .is_one_host = false}), Not(Contains(Key("NCCL_SOCKET_IFNAME"))));
}

TEST(NcclEnvironment, TurnsNvlsOffForItDoesNotSurviveARestart) {
  EXPECT_THAT(nccl_environment({.version = 22809}), Contains(Pair("NCCL_NVLS_ENABLE", "0")));
}

// Threads that spin would make a replica that hangs look busy.
TEST(NcclEnvironment, HasNcclNameItsThreadsForTheWatchdog) {
  EXPECT_THAT(nccl_environment({.version = 22809}), Contains(Pair("NCCL_SET_THREAD_NAME", "1")));
}

TEST(NcclEnvironment, PretendsThatRanksOnOneGpuAreOnDifferentHosts) {
  const auto settings = nccl_environment({.version = 23002, .shares_device = true, .process_name = "replica-17"});

  EXPECT_THAT(settings, Contains(Pair("NCCL_HOSTID", "replica-17")));
  EXPECT_THAT(settings, Contains(Pair("NCCL_NET", "Socket")));
  EXPECT_THAT(settings, Not(Contains(Key("NCCL_MULTI_RANK_GPU_ENABLE"))));
}

TEST(NcclEnvironment, AsksForRanksOnOneGpuWhereTheVersionCan) {
  const auto settings = nccl_environment({.version = 23003, .shares_device = true, .process_name = "replica-17"});

  EXPECT_THAT(settings, Contains(Pair("NCCL_MULTI_RANK_GPU_ENABLE", "1")));
  EXPECT_THAT(settings, Not(Contains(Key("NCCL_HOSTID"))));
}

// NCCL reads the variable once in a process, and a spare may share a device later.
TEST(NcclEnvironment, LetsRanksShareAGpuThatHaveTheirOwnSoFar) {
  EXPECT_THAT(nccl_environment({.version = 23003}), Contains(Pair("NCCL_MULTI_RANK_GPU_ENABLE", "1")));
  EXPECT_THAT(nccl_environment({.version = 23002}), Not(Contains(Key("NCCL_MULTI_RANK_GPU_ENABLE"))));
}

TEST(NcclEnvironment, LeavesRanksOnTheirOwnGpusAlone) {
  const auto settings = nccl_environment({.version = 22809});

  EXPECT_THAT(settings, Not(Contains(Key("NCCL_HOSTID"))));
  EXPECT_THAT(settings, Not(Contains(Key("NCCL_MAX_CTAS"))));
}

TEST(NcclEnvironment, LeavesWhatTheUserHasSet) {
  ::setenv("NCCL_NVLS_ENABLE", "1", 1);
  ::unsetenv("NCCL_SOCKET_IFNAME");

  set_nccl_environment({.version = 22809});

  EXPECT_STREQ(std::getenv("NCCL_NVLS_ENABLE"), "1");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=lo");
}

// The variable overrides a communicator's own setting, and connecting would have no deadline.
TEST(NcclEnvironment, NeverLetsCallsBlock) {
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);

  const std::string said = set_and_listen();

  EXPECT_STREQ(std::getenv("NCCL_COMM_BLOCKING"), "0");
  EXPECT_THAT(said, HasSubstr("NCCL_COMM_BLOCKING=1 is ignored and set to 0"));
}

// NCCL reads its configuration file for variables that are not set, and that may say otherwise.
TEST(NcclEnvironment, SetsNonBlockingCallsIfTheUserDidNot) {
  ::unsetenv("NCCL_COMM_BLOCKING");

  EXPECT_THAT(set_and_listen(), IsEmpty());
  EXPECT_STREQ(std::getenv("NCCL_COMM_BLOCKING"), "0");

  EXPECT_THAT(set_and_listen(), IsEmpty());
  EXPECT_STREQ(std::getenv("NCCL_COMM_BLOCKING"), "0");
}

}  // namespace holdfast
