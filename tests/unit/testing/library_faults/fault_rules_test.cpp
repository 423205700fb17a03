// Rules for calls of NCCL and CUDA that go wrong: which call is struck, in which process, and errors in rules.

#include "fault_rules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/temporary_folder.h"

namespace holdfast::resilience {
namespace {

std::string refusal_of(const std::string& rules) {
  try {
    const LibraryFaults faults(rules);
  } catch (const std::invalid_argument& failure) {
    return failure.what();
  }
  return "";
}

// Removes both variables before and after each test.
class StartedRank : public testing::Test {
 protected:
  StartedRank() { unset(); }
  ~StartedRank() override { unset(); }

 private:
  static void unset() {
    for (const char* name : {"HOLDFAST_RANK", "RANK"}) ::unsetenv(name);
  }
};

TEST(LibraryFaults, StrikeTheCallThatTheRuleNames) {
  LibraryFaults faults("function=ncclAllGather,call=2,fault=hang");

  EXPECT_FALSE(faults.enter("ncclAllGather", 0));
  EXPECT_FALSE(faults.enter("ncclSend", 0));
  ASSERT_TRUE(faults.enter("ncclAllGather", 0));
  EXPECT_FALSE(faults.enter("ncclAllGather", 0));
}

TEST(LibraryFaults, CountTheCallsOfEachRank) {
  LibraryFaults faults("function=ncclSend,rank=1,call=2,fault=hang");

  EXPECT_FALSE(faults.enter("ncclSend", 1));
  EXPECT_FALSE(faults.enter("ncclSend", 0));
  EXPECT_FALSE(faults.enter("ncclSend", 0));
  EXPECT_TRUE(faults.enter("ncclSend", 1));
}

TEST(LibraryFaults, StrikeFromACallOn) {
  LibraryFaults faults("function=*,from=2,fault=slow,milliseconds=7");

  EXPECT_FALSE(faults.enter("ncclSend", 0));
  const auto second = faults.enter("ncclSend", 0);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, LibraryFault::Kind::slow);
  EXPECT_EQ(second->delay, std::chrono::milliseconds(7));
  EXPECT_TRUE(faults.enter("ncclSend", 0));
}

TEST(LibraryFaults, FollowTheFirstRuleThatMatches) {
  LibraryFaults faults("function=ncclSend,fault=fail,result=6;function=*,fault=report,result=1");

  EXPECT_EQ(faults.enter("ncclSend", 0)->result, 6);
  EXPECT_EQ(faults.enter("ncclRecv", 0)->kind, LibraryFault::Kind::report);
}

// A process that replaces a struck one counts calls from 1 again, and must not be struck, too.
TEST(LibraryFaults, StrikeOneProcessWhenTheRuleSaysOnce) {
  const TemporaryFolder folder;
  const std::string rules = "function=cudaMalloc,call=2,fault=fail,once=" + folder / "had";
  LibraryFaults first(rules);
  LibraryFaults second(rules);

  EXPECT_FALSE(first.enter("cudaMalloc", 0));
  EXPECT_TRUE(first.enter("cudaMalloc", 0));
  EXPECT_FALSE(second.enter("cudaMalloc", 0));
  EXPECT_FALSE(second.enter("cudaMalloc", 0));
}

TEST(LibraryFaults, DoNotStrikeWithoutRules) {
  EXPECT_FALSE(LibraryFaults("").enter("ncclSend", 0));
}

TEST(LibraryFaults, NameThePartThatIsWrong) {
  for (const std::string part : {"rank=one", "call=0", "fault=explode", "colour=red", "milliseconds="}) {
    EXPECT_NE(refusal_of("function=ncclSend,fault=hang," + part).find(part), std::string::npos) << part;
  }
  EXPECT_NE(refusal_of("fault=hang").find("function"), std::string::npos);
  EXPECT_NE(refusal_of("function=ncclSend").find("fault"), std::string::npos);
}

TEST_F(StartedRank, IsTheRankOfTheReplica) {
  ::setenv("HOLDFAST_RANK", "1", 1);
  ::setenv("RANK", "0", 1);  // from the launcher of the watchdog

  EXPECT_EQ(started_rank(), 1);
}

TEST_F(StartedRank, IsTheRankOfALauncherWithoutReplicas) {
  ::setenv("RANK", "3", 1);

  EXPECT_EQ(started_rank(), 3);
}

TEST_F(StartedRank, IsMissingWithoutAVariable) {
  EXPECT_EQ(started_rank(), -1);
}

TEST_F(StartedRank, IsNotGuessed) {
  ::setenv("RANK", "first", 1);

  EXPECT_THROW(started_rank(), std::invalid_argument);
}

TEST(PlainNames, AreTheSameForAnyDefaultStream) {
  EXPECT_EQ(plain_name("cudaMemcpyAsync"), "cudaMemcpyAsync");
  EXPECT_EQ(plain_name("cudaMemcpyAsync_ptsz"), "cudaMemcpyAsync");
  EXPECT_EQ(plain_name("cudaMemcpy_ptds"), "cudaMemcpy");
}

// Rules for cudaLaunchKernel used to strike nothing in programs that nvcc of CUDA 13 had compiled.
TEST(PlainNames, AreTheSameForLaunchesOfEachCuda) {
  EXPECT_EQ(plain_name("__cudaLaunchKernel"), "cudaLaunchKernel");
  EXPECT_EQ(plain_name("__cudaLaunchKernel_ptsz"), "cudaLaunchKernel");
}

}  // namespace
}  // namespace holdfast::resilience
