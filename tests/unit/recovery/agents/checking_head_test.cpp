// What host 0 finds out about the others: whether they come, what differs, and which of them reach each other.

#include "agents/checking_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unit/recovery/support/checked_hosts.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckingHeadTest : public CheckedHosts {};

TEST_F(CheckingHeadTest, FindsNothingWrongWithHostsThatAreAlike) {
  hosts_ = 3;
  start_head(options_of(0));
  for (int host = 1; host < 3; ++host) start_host(host, options_of(host));

  const HostsReport report = report_of(0);

  EXPECT_TRUE(report.is_well);
  EXPECT_EQ(report.sentence, "a run over these 3 hosts can begin");
  for (const HostCheck& check : report.checks) {
    EXPECT_EQ(check.problem, "") << check.what;
    EXPECT_EQ(check.remedy, "") << check.what;
    EXPECT_NE(check.found, "") << check.what;
  }
  EXPECT_EQ(check_of(report, 1, "meeting")->found, "127.0.0.1");
  for (const char* what : {"Holdfast", "arithmetic", "replicas", "command", "program", "run directory",
                           "connection to host 0", "connection to host 1"}) {
    EXPECT_TRUE(check_of(report, 2, what).has_value()) << what;
  }
  EXPECT_FALSE(check_of(report, 1, "connection to host 1").has_value());
  EXPECT_THAT(news_[0], AllOf(HasSubstr("host 1 has come from 127.0.0.1"), HasSubstr("host 2 has come")));
}

TEST_F(CheckingHeadTest, LeavesNothingInTheRunDirectory) {
  start_head(options_of(0));
  start_host(1, options_of(1));
  report_of(0);

  head_.reset();

  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(CheckingHeadTest, TellsEachDifferenceAndGoesOn) {
  start_head(options_of(0));
  CheckingOptions other = options_of(1);
  other.facts.arithmetic = "isa avx512_core";
  other.facts.replicas = 4;
  start_host(1, other);

  const HostsReport report = report_of(0);

  EXPECT_FALSE(report.is_well);
  EXPECT_EQ(report.sentence, "2 problems found on 2 hosts");
  EXPECT_EQ(check_of(report, 1, "arithmetic")->problem,
            "it computes with isa avx512_core, and host 0 with isa avx2, which gives other bits");
  EXPECT_EQ(check_of(report, 1, "replicas")->problem, "it would start 4, and host 0 would start 2");
  EXPECT_EQ(check_of(report, 1, "connection to host 0")->found, "works");
}

TEST_F(CheckingHeadTest, NamesAHostThatDoesNotComeAndWhatWasRefusedMeanwhile) {
  start_head(options_of(0));
  start_host(1, options_of(1), secret_of(2));
  loopback_.run_until([this] { return !news_[0].empty() && !news_[1].empty(); }, "the refusal");

  head_->stop_waiting();

  const HostsReport report = report_of(0);
  EXPECT_FALSE(report.is_well);
  const auto meeting = check_of(report, 1, "meeting");
  ASSERT_TRUE(meeting.has_value());
  EXPECT_THAT(meeting->problem, HasSubstr("it has not come"));
  EXPECT_THAT(meeting->remedy, AllOf(HasSubstr("with --node-rank 1"),
                                     HasSubstr("127.0.0.1 was refused: it does not have the secret of the run")));
  EXPECT_THAT(news_[1], HasSubstr("it does not have the secret of the run"));
}

TEST_F(CheckingHeadTest, WaitsNoLongerThanItIsTold) {
  CheckingOptions options = options_of(0);
  options.join_timeout = milliseconds(1);

  start_head(options);

  EXPECT_THAT(check_of(report_of(0), 1, "meeting")->problem, HasSubstr("it has not come"));
}

TEST_F(CheckingHeadTest, ChecksThoseThatHaveCome) {
  hosts_ = 4;
  start_head(options_of(0));
  for (const int host : {1, 3}) start_host(host, options_of(host));
  loopback_.run_until([this] { return news_[1] != "" && news_[3] != ""; }, "the hosts");

  head_->stop_waiting();

  // Either may have come without having told anything by then.
  const HostsReport report = report_of(0);
  EXPECT_FALSE(report.is_well);
  EXPECT_THAT(check_of(report, 2, "meeting")->problem, HasSubstr("it has not come"));
  EXPECT_FALSE(check_of(report, 3, "connection to host 2").has_value());
}

TEST_F(CheckingHeadTest, RefusesASecondHostOfOneNumber) {
  hosts_ = 3;
  start_head(options_of(0));
  start_host(1, options_of(1));
  loopback_.run_until([this] { return !news_[1].empty(); }, "the first");
  CheckingOptions same = options_of(1);
  same.on_news = {};
  start_host(2, same);

  const HostsReport second = report_of(2);

  EXPECT_FALSE(second.is_well);
  EXPECT_THAT(second.sentence,
              HasSubstr("host 1 has come already, from 127.0.0.1; give each host another --node-rank"));
  EXPECT_FALSE(reports_.contains(0));
}

// The head is known by an address that only reaches it from its own host.
TEST_F(CheckingHeadTest, NamesHostsThatDoNotReachEachOther) {
  CheckingOptions unreached = options_of(0);
  unreached.head.host = "::2";
  start_head(unreached);
  CheckingOptions options = options_of(1);
  options.reach_timeout = milliseconds(1);
  start_host(1, options);

  const HostsReport report = report_of(0);

  EXPECT_FALSE(report.is_well);
  const auto connection = check_of(report, 1, "connection to host 0");
  ASSERT_TRUE(connection.has_value());
  EXPECT_THAT(connection->problem, HasSubstr("[::2]:"));
  EXPECT_THAT(connection->problem, HasSubstr("cannot be reached"));
  EXPECT_THAT(connection->remedy, HasSubstr("firewall"));
}

TEST_F(CheckingHeadTest, WaitsNoLongerForConnectionsThanItIsTold) {
  CheckingOptions unreached = options_of(0);
  unreached.head.host = "::2";
  unreached.link_timeout = milliseconds(1);
  start_head(unreached);
  start_host(1, options_of(1));

  EXPECT_THAT(check_of(report_of(0), 1, "connection to host 0")->problem, HasSubstr("it was not made within"));
}

// Ctrl-C did nothing while host 0 waited for connections, which a firewall may swallow.
TEST_F(CheckingHeadTest, WaitsForConnectionsUntilItIsStopped) {
  CheckingOptions unreached = options_of(0);
  unreached.head.host = "::2";
  start_head(unreached);
  CheckingOptions patient = options_of(1);
  patient.reach_timeout = kSurely;
  start_host(1, patient);
  loopback_.run_until([this] { return news_[0].find("connect with each other") != std::string::npos; }, "the wait");

  head_->stop_waiting();

  const HostsReport report = report_of(0);
  EXPECT_FALSE(report.is_well);
  EXPECT_EQ(check_of(report, 1, "meeting")->problem, "");
  EXPECT_EQ(check_of(report, 1, "connection to host 0")->problem, "it was not made yet, and the wait was ended");
  EXPECT_EQ(report_of(1).sentence, report.sentence);
}

// A further Ctrl-C, while another host had not taken the report, threw it away.
TEST_F(CheckingHeadTest, ReportsAtOnceWhereItIsNotToWaitForOthersToTakeTheReport) {
  CheckingOptions unreached = options_of(0);
  unreached.head.host = "::2";
  start_head(unreached);
  CheckingOptions patient = options_of(1);
  patient.reach_timeout = kSurely;
  start_host(1, patient);
  loopback_.run_until([this] { return news_[0].find("connect with each other") != std::string::npos; }, "the wait");
  head_->stop_waiting();
  ASSERT_FALSE(reports_.contains(0)) << "host 1 has not taken it yet";

  head_->stop_waiting();

  ASSERT_TRUE(reports_.contains(0));
  EXPECT_EQ(check_of(reports_.at(0), 1, "connection to host 0")->problem,
            "it was not made yet, and the wait was ended");
  // When host 1 has taken it, it is not reported once more.
  EXPECT_EQ(report_of(1).sentence, reports_.at(0).sentence);
  checked_.clear();
  loopback_.io.restart();
  loopback_.io.poll();
}

}  // namespace
}  // namespace holdfast::recovery
