// What is refused before a host of a run over several begins anything. Whole runs are in tests/integration/hosts.

#include "holdfast/recovery/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

class OneOfTheHosts : public ::testing::Test {
 protected:
  OneOfTheHosts() {
    std::ofstream(secret_) << std::string(64, 'a');
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
  }

  WatchdogOptions options() const {
    return {.replicas = 1,
            .join_timeout = std::chrono::milliseconds(50),
            .run_directory = folder_ / "run",
            .command = {"sh", "-c", "true"}};
  }
  // Nobody listens there.
  HostFlags flags(int host) const { return {.nnodes = 2, .node_rank = host, .head = "127.0.0.2:1", .secret = secret_}; }

  const TemporaryFolder folder_;
  const std::string secret_ = folder_ / "secret";
};

TEST_F(OneOfTheHosts, NeedsTheSecret) {
  HostFlags without = flags(1);
  without.secret = folder_ / "none";

  EXPECT_EQ(code_thrown_by([&] { run_program(options(), {}, without); }), ErrorCode::not_found);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(OneOfTheHosts, NeedsAProgramThatUsesHoldfast) {
  WatchdogOptions plain = options();
  plain.is_plain_program = true;

  EXPECT_THAT(sentence_thrown_by([&] { run_program(plain, {}, flags(1)); }), HasSubstr("runs on a single host"));
}

// Its digest is compared with that of the other hosts.
TEST_F(OneOfTheHosts, MayHaveAProgramOfAnySize) {
  WatchdogOptions large = options();
  large.command = {folder_ / "program"};
  std::ofstream(folder_ / "program") << "#!/bin/sh\n";
  std::filesystem::resize_file(folder_ / "program", 65 << 20);
  std::filesystem::permissions(folder_ / "program", std::filesystem::perms::owner_all);

  EXPECT_EQ(run_program(large, {}, flags(1)).exit_code, kExitStopped);
}

TEST_F(OneOfTheHosts, EndsWhenTheHeadIsNotReached) {
  const RunOutcome outcome = run_program(options(), {}, flags(1));

  EXPECT_EQ(outcome.exit_code, kExitStopped);
  EXPECT_THAT(outcome.sentence, HasSubstr("the head at 127.0.0.2:1 cannot be reached"));
  EXPECT_THAT(outcome.sentence, HasSubstr("start the same command on the host that --head names"));
}

}  // namespace
}  // namespace holdfast::recovery
