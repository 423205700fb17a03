// How a host that is checked ends: with the verdict of host 0, or with a sentence that says why there is none.

#include "agents/checking_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unit/recovery/support/checked_hosts.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckingHostTest : public CheckedHosts {};

TEST_F(CheckingHostTest, GetsTheVerdictOfTheFirst) {
  start_head(options_of(0));
  start_host(1, options_of(1));

  const HostsReport report = report_of(1);

  EXPECT_EQ(report.host, 1);
  EXPECT_TRUE(report.is_well);
  EXPECT_EQ(report.sentence, "a run over these 2 hosts can begin");
  EXPECT_TRUE(report.checks.empty());
}

TEST_F(CheckingHostTest, SaysThatItsFolderIsAnotherOne) {
  const TemporaryFolder other;
  start_head(options_of(0));
  CheckingOptions options = options_of(1);
  options.facts.run_directory = other.path();
  start_host(1, options);

  EXPECT_FALSE(report_of(1).is_well);
  EXPECT_EQ(check_of(report_of(0), 1, "run directory")->problem,
            "it is " + other.path() + " there and " + folder_.path() + " on host 0");
}

TEST_F(CheckingHostTest, EndsWhenNobodyAnswers) {
  CheckingOptions options = options_of(1);
  options.head.port = 1;  // nobody listens there
  options.join_timeout = milliseconds(20);

  start_host(1, options);

  const HostsReport report = report_of(1);
  EXPECT_FALSE(report.is_well);
  EXPECT_THAT(report.sentence,
              AllOf(HasSubstr("the head at 127.0.0.1:1 cannot be reached: "),
                    HasSubstr("start the same command on host 0, open its port 1, and give --secret a copy")));
}

TEST_F(CheckingHostTest, EndsWhenItWasStartedForAnotherNumberOfHosts) {
  start_head(options_of(0));
  CheckingOptions options = options_of(1);
  options.hosts = 3;

  start_host(1, options);

  EXPECT_THAT(report_of(1).sentence, HasSubstr("it was started for 3 hosts, and host 0 for 2; give --nnodes the same"));
}

// The head of a run does not take a host that is checked.
TEST_F(CheckingHostTest, IsNotTakenForAHostOfARun) {
  const AgentListener of_a_run(loopback_.io, 0, tls_context(secret_of(1)), introduction_of(0), {}, {});
  CheckingOptions options = options_of(1);
  options.head.port = of_a_run.port();

  start_host(1, options);

  EXPECT_THAT(report_of(1).sentence, HasSubstr("it belongs to another run: its run id is \"doctor\""));
}

TEST_F(CheckingHostTest, EndsWhenTheFirstIsGone) {
  hosts_ = 3;
  start_head(options_of(0));
  start_host(1, options_of(1));
  loopback_.run_until([this] { return news_[0] != "" && news_[1] != ""; }, "the meeting");

  head_.reset();

  EXPECT_THAT(report_of(1).sentence, HasSubstr("host 0 ended the check: "));
}

}  // namespace
}  // namespace holdfast::recovery
