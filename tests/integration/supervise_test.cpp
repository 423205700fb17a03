// What programs of the SDK hand to the replicas that they start.

#include <gtest/gtest.h>

#include <map>

#include "resilience/digits_run.h"
#include "support/comes_true.h"

namespace holdfast {
namespace {

// By the rank that they were started as, which of a run's first processes is their number.
std::map<int, int> replica_pids(const TemporaryFolder& folder) {
  std::map<int, int> pids;
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.at("event") == "ready") pids[line.at("member").get<int>()] = line.at("pid").get<int>();
  }
  return pids;
}

}  // namespace

// Rules that make one rank's calls of CUDA fail struck no replica: it did not know which rank it was.
TEST(Supervise, TellsReplicasTheRankThatTheyAreStartedAs) {
  const TemporaryFolder folder;
  const RunningProgram program(built_program("digits"),
                               digits_arguments({.replicas = 2, .options = {{"--epochs", "1000"}}}, folder));
  ASSERT_TRUE(comes_true([&] { return replica_pids(folder).size() == 2; }));

  for (const auto& [rank, pid] : replica_pids(folder)) {
    const std::string end(1, '\0'), variables = end + read_file("/proc/" + std::to_string(pid) + "/environ");
    EXPECT_NE(variables.find(end + "HOLDFAST_RANK=" + std::to_string(rank) + end), std::string::npos) << rank;
  }
}

}  // namespace holdfast
