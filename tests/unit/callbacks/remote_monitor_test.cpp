// Epochs reach a server, and no server can disturb a training.

#include "holdfast/observe/remote_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "callbacks/http_post.h"
#include "holdfast/base/log.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/callbacks/support/logged_lines.h"
#include "unit/callbacks/support/played_epochs.h"
#include "unit/callbacks/support/played_server.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

class RemoteMonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_post()) GTEST_SKIP() << "this build has no libcurl";
    training.context.directory = folder.path();
  }

  RemoteMonitorOptions options(const PlayedServer& server) const {
    return {.root = server.root(),
            .path = "/epochs",
            .run = "run7",
            .flush_limit = milliseconds(60'000),
            .first_pause = milliseconds(1)};
  }
  void run_epochs(RemoteMonitor& monitor, std::size_t first, std::size_t end) {
    for (std::size_t epoch = first; epoch < end; ++epoch) training.end_epoch(monitor, kThreePlayedEpochs[epoch]);
  }

  TemporaryFolder folder;
  PlayedEpochs training;
};

}  // namespace

TEST_F(RemoteMonitorTest, DeliversEachEpochWithItsKeyAndItsLogs) {
  PlayedServer server;
  RemoteMonitor monitor(options(server));

  training.begin(monitor);
  run_epochs(monitor, 0, 3);
  training.end(monitor);

  const std::vector<PlayedServer::Request> requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(requests[epoch].head, HasSubstr("POST /epochs HTTP/1.1"));
    EXPECT_THAT(requests[epoch].head, HasSubstr("Idempotency-Key: run7/0/" + std::to_string(epoch) + "\r\n"));
    nlohmann::json expected = kThreePlayedEpochs[epoch];
    expected.update({{"run", "run7"}, {"call", 0}, {"epoch", epoch}});
    EXPECT_EQ(nlohmann::json::parse(requests[epoch].body), expected);
  }
  EXPECT_EQ(monitor.delivered(), 3U);
  EXPECT_EQ(monitor.dropped(), 0U);
}

TEST_F(RemoteMonitorTest, SendsAFormAsKerasDoes) {
  PlayedServer server;
  RemoteMonitorOptions form = options(server);
  form.send_as_json = false;
  RemoteMonitor monitor(form);

  run_epochs(monitor, 0, 1);
  training.end(monitor);

  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(server.requests()[0].body, testing::StartsWith("data=%7B%22call%22%3A0%2C%22epoch%22%3A0"));
  EXPECT_THAT(server.requests()[0].head, HasSubstr("Content-Type: application/x-www-form-urlencoded"));
}

TEST_F(RemoteMonitorTest, TriesAgainWhereTheServerFails) {
  PlayedServer server({"503 Busy", "429 Slower", "500 Broken"});
  RemoteMonitor monitor(options(server));

  run_epochs(monitor, 0, 2);
  training.end(monitor);

  EXPECT_EQ(server.requests().size(), 5U);
  EXPECT_EQ(monitor.delivered(), 2U);
  EXPECT_EQ(monitor.dropped(), 0U);
}

TEST_F(RemoteMonitorTest, DropsAndCountsWhatTheServerRefusesAndFollowsNoRedirection) {
  PlayedServer elsewhere;
  PlayedServer server({"401 Who", "302 Found\r\nLocation: " + elsewhere.root() + "/epochs"});
  const LoggedLines log;
  RemoteMonitor monitor(options(server));

  run_epochs(monitor, 0, 3);
  training.end(monitor);

  EXPECT_EQ(server.requests().size(), 3U);
  EXPECT_TRUE(elsewhere.requests().empty());
  EXPECT_EQ(monitor.delivered(), 1U);
  EXPECT_EQ(monitor.dropped(), 2U);
  EXPECT_THAT(log.text(), HasSubstr("the server refuses it (status 401)"));
}

TEST_F(RemoteMonitorTest, EndsWithATrainingWhoseServerIsDead) {
  RemoteMonitorOptions dead{
      .root = "http://127.0.0.1:1", .flush_limit = milliseconds(1), .first_pause = milliseconds(1)};
  const LoggedLines log;
  RemoteMonitor monitor(dead);

  training.begin(monitor);
  run_epochs(monitor, 0, 3);
  training.end(monitor);

  EXPECT_EQ(monitor.delivered(), 0U);
  EXPECT_EQ(monitor.dropped(), 3U);
  EXPECT_THAT(log.text(), HasSubstr("RemoteMonitor has dropped 3 epochs so far"));
}

// The server takes the request and never answers.
TEST_F(RemoteMonitorTest, KeepsABoundedQueueWhereTheServerIsSlow) {
  PlayedServer server({"hang"});
  RemoteMonitorOptions bounded = options(server);
  bounded.queue = 2;
  bounded.flush_limit = milliseconds(0);
  RemoteMonitor monitor(bounded);

  training.begin(monitor);
  run_epochs(monitor, 0, 3);

  EXPECT_EQ(monitor.dropped(), 1U);
  training.end(monitor);
  EXPECT_EQ(monitor.dropped(), 3U);
}

TEST_F(RemoteMonitorTest, GoesOnAfterWhatAnEarlierProcessDelivered) {
  PlayedServer server;
  {
    RemoteMonitor dead(options(server));
    run_epochs(dead, 0, 2);
    training.end(dead);
  }
  RemoteMonitor next(options(server));

  training.begin(next);
  run_epochs(next, 2, 3);
  training.end(next);

  ASSERT_EQ(server.requests().size(), 3U);
  EXPECT_THAT(server.requests()[2].head, HasSubstr("Idempotency-Key: run7/0/2"));
}

// The process before had queued an epoch, and died.
TEST_F(RemoteMonitorTest, DeliversWhatADeadProcessCouldNot) {
  PlayedServer server;
  training.go_back_to({kThreePlayedEpochs[0], kThreePlayedEpochs[1]});
  RemoteMonitor next(options(server));

  training.end_step(next);
  training.end(next);

  EXPECT_EQ(next.delivered(), 2U);
}

// Its limits are hours, so a step that waited for an answer would never end.
TEST_F(RemoteMonitorTest, HoldsNoStepWhereTheServerNeverAnswers) {
  EXPECT_EQ(RemoteMonitorOptions{}.timeout, milliseconds(5000));
  EXPECT_EQ(RemoteMonitorOptions{}.flush_limit, milliseconds(5000));
  PlayedServer server({"hang", "hang", "hang", "hang"});
  RemoteMonitorOptions silent = options(server);
  silent.timeout = std::chrono::hours(1);
  silent.flush_limit = milliseconds(0);
  RemoteMonitor monitor(silent);

  training.begin(monitor);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    training.end_step(monitor);
    training.end_epoch(monitor, kThreePlayedEpochs[epoch]);
  }
  EXPECT_EQ(monitor.dropped(), 0U);
  training.end(monitor);

  EXPECT_EQ(monitor.delivered(), 0U);
  EXPECT_EQ(monitor.dropped(), 3U);
}

// The record is a file in the run directory, and writing it may take as long as a disk likes. Here it fails, and what
// listens to the log then takes its time.
TEST_F(RemoteMonitorTest, AddsEpochsWhileTheRecordOfAnEarlierOneIsWritten) {
  PlayedServer server;
  training.context.directory = folder / "gone";
  std::promise<void> begun;
  std::promise<void> added;
  bool is_added_meanwhile = false;
  int records = 0;
  set_log_sink([&](LogLevel, std::string_view line) {
    if (line.find("cannot note what it delivered") == std::string_view::npos || records++ > 0) return;
    begun.set_value();
    is_added_meanwhile = added.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  });
  RemoteMonitor monitor(options(server));

  training.begin(monitor);
  run_epochs(monitor, 0, 1);
  EXPECT_EQ(begun.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  run_epochs(monitor, 1, 2);
  added.set_value();
  training.end(monitor);
  set_log_sink({});

  EXPECT_TRUE(is_added_meanwhile);
  EXPECT_EQ(monitor.delivered(), 2U);
  EXPECT_EQ(records, 2);
}

// Both Trainers have a call 0, and a server took the second one's epochs for repetitions.
TEST_F(RemoteMonitorTest, TellsTheTrainersOfARunApart) {
  PlayedServer server;
  PlayedEpochs second;
  second.context.directory = folder / "trainer2";
  second.context.trainer_number = 1;
  std::filesystem::create_directory(second.context.directory);
  RemoteMonitor monitor(options(server));

  training.begin(monitor);
  run_epochs(monitor, 0, 2);
  training.end(monitor);
  second.begin(monitor);
  second.end_epoch(monitor, kThreePlayedEpochs[0]);
  second.end(monitor);

  ASSERT_EQ(server.requests().size(), 3U);
  EXPECT_THAT(server.requests()[1].head, HasSubstr("Idempotency-Key: run7/0/1"));
  EXPECT_THAT(server.requests()[1].body, Not(HasSubstr("trainer")));
  EXPECT_THAT(server.requests()[2].head, HasSubstr("Idempotency-Key: run7/trainer2/0/0"));
  EXPECT_EQ(nlohmann::json::parse(server.requests()[2].body).at("trainer"), 2);
  EXPECT_EQ(monitor.delivered(), 3U);
}

TEST_F(RemoteMonitorTest, NamesALaterTrainerByTheRunAndNotByItsFolder) {
  PlayedServer server;
  training.context.directory = folder / "trainer2";
  training.context.trainer_number = 1;
  std::filesystem::create_directory(training.context.directory);
  RemoteMonitorOptions unnamed = options(server);
  unnamed.run.clear();
  RemoteMonitor monitor(unnamed);

  training.begin(monitor);
  run_epochs(monitor, 0, 1);
  training.end(monitor);

  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(nlohmann::json::parse(server.requests()[0].body).at("run"),
            std::filesystem::path(folder.path()).filename().string());
}

// Without directories, nothing but the beginning of fit() tells two programs' calls apart.
TEST_F(RemoteMonitorTest, SendsTheEpochsOfEachTrainerThatItServes) {
  PlayedServer server;
  PlayedEpochs first;
  PlayedEpochs second;
  RemoteMonitor monitor(options(server));

  for (PlayedEpochs* const epochs : {&first, &second}) {
    epochs->begin(monitor);
    epochs->end_epoch(monitor, kThreePlayedEpochs[0]);
    epochs->end(monitor);
  }

  EXPECT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(monitor.delivered(), 2U);
}

TEST_F(RemoteMonitorTest, SendsSecretHeadersAndLogsNothingOfThem) {
  PlayedServer server({"403 No"});
  std::ofstream(folder / "headers") << "Authorization: Bearer s3cret\n";
  RemoteMonitorOptions secret = options(server);
  secret.headers_file = folder / "headers";
  const LoggedLines log;
  RemoteMonitor monitor(secret);

  training.begin(monitor);
  run_epochs(monitor, 0, 2);
  training.end(monitor);

  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_THAT(server.requests()[1].head, HasSubstr("Authorization: Bearer s3cret\r\n"));
  EXPECT_THAT(log.text(), Not(HasSubstr("s3cret")));
  EXPECT_THAT(log.text(), Not(testing::IsEmpty()));
}

TEST_F(RemoteMonitorTest, RefusesAFileOfHeadersWithoutShowingIt) {
  PlayedServer server;
  std::ofstream(folder / "headers") << "Accept: text/plain\ns3cret without a name\n";
  RemoteMonitorOptions secret = options(server);
  secret.headers_file = folder / "headers";
  RemoteMonitor monitor(secret);

  const std::string sentence = sentence_thrown_by([&] { training.begin(monitor); });

  EXPECT_THAT(sentence, HasSubstr("cannot send line 2 of"));
  EXPECT_THAT(sentence, Not(HasSubstr("s3cret")));
}

TEST_F(RemoteMonitorTest, RefusesAddressesAndLimitsThatCannotBe) {
  const auto refusal_of = [](const RemoteMonitorOptions& options) {
    return sentence_thrown_by([&] { RemoteMonitor{options}; });
  };

  EXPECT_THAT(refusal_of({.root = "ftp://host"}), HasSubstr("begins with http:// or https://"));
  EXPECT_THAT(refusal_of({.root = "http://user:s3cret@host"}), HasSubstr("takes no credentials in its root"));
  EXPECT_THAT(refusal_of({.root = "http://user:s3cret@host"}), Not(HasSubstr("s3cret")));
  EXPECT_THAT(refusal_of({.root = "https://"}), HasSubstr("the name of a server"));
  EXPECT_THAT(refusal_of({.root = "http://host", .headers_file = "h"}), HasSubstr("in clear text to http://host"));
  EXPECT_THAT(refusal_of({.queue = 0}), HasSubstr("needs a queue"));
  // Right after the root it could make another port of it, or another server.
  for (const char* const path : {"publish", "", "?a=1", "/publish now", "/publish\r\nHost: b"}) {
    EXPECT_THAT(refusal_of({.path = path}), HasSubstr("needs a path that begins with /")) << path;
  }
  EXPECT_NO_THROW(RemoteMonitor{{.path = "/"}});
}

// A name may begin as an address of this host does.
TEST_F(RemoteMonitorTest, SendsHeadersInClearTextToThisHostAlone) {
  for (const char* const host : {"127.evil.example", "127.0.0.1.evil.example", "127.0.0.256", "127.0.0.08", "127.0.0.",
                                 "127.0.0.1.1", "127.1", "127.0.0.1:80x", "127.0.0.1:80:80", "localhost.evil.example",
                                 "localhost:evil.example", "[::1].evil.example", "[::1]evil", "[::2]", "::1"}) {
    SCOPED_TRACE(host);
    const RemoteMonitorOptions options = {.root = std::string("http://") + host, .headers_file = "h"};
    EXPECT_THAT(sentence_thrown_by([&] { RemoteMonitor{options}; }), HasSubstr("in clear text to http://"));
  }
  for (const char* const host :
       {"localhost", "localhost:9000", "127.0.0.1", "127.0.0.1:80", "127.255.10.0", "[::1]", "[::1]:9000"}) {
    SCOPED_TRACE(host);
    const RemoteMonitorOptions options = {.root = std::string("http://") + host + "/publish", .headers_file = "h"};
    EXPECT_NO_THROW(RemoteMonitor{options});
  }
}

}  // namespace holdfast
