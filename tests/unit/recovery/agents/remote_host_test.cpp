// Processes of other hosts as the head has them, over real connections: what reaches them, what is heard of them, and
// what a peer that errs can do. What a lost connection does is in agent_service_test.cpp.

#include "agents/remote_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "channel/messages.h"
#include "holdfast/base/signal_word.h"
#include "unit/recovery/support/played_hosts.h"

namespace holdfast::recovery {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlayedRemoteHosts : public PlayedHosts {
 protected:
  explicit PlayedRemoteHosts(const HostTimes& times = kPatientTimes) : PlayedHosts(times) {
    start_agent_and_wait(1);
    start_agent_and_wait(2);
  }
};

TEST_F(PlayedRemoteHosts, AreThereOnceTheirAgentsHaveBeenHeard) {
  for (const int number : {1, 2}) {
    EXPECT_TRUE(host(number).remote->is_there());
    EXPECT_THAT(host(number).present, ElementsAre(IsEmpty()));
    EXPECT_FALSE(host(number).fence.has_run_out());
  }
}

TEST_F(PlayedRemoteHosts, StartProcesses) {
  Heard heard;

  const auto process = host(2).remote->start({.executable = "/bin/train",
                                              .arguments = {"train", "-v"},
                                              .variables = {"RANK=3"},
                                              .member = 7,
                                              .ignores_failing_writes = true},
                                             heard.handlers());
  EXPECT_EQ(process->pid(), 0);
  run_until([&] { return process->pid() != 0; }, "the process");

  EXPECT_EQ(process->pid(), 1007);
  const ReplicaStarter::Program& program = host(2).played(7).program;
  EXPECT_EQ(program.executable, "/bin/train");
  EXPECT_THAT(program.arguments, ElementsAre("train", "-v"));
  EXPECT_THAT(program.variables, ElementsAre("RANK=3"));
  EXPECT_TRUE(program.ignores_failing_writes);
  EXPECT_THAT(host(1).starter->played, IsEmpty());
}

TEST_F(PlayedRemoteHosts, SayWhyAProcessCouldNotBeStarted) {
  host(1).starter->failure = Error(ErrorCode::not_found, "there is no program train");
  Heard heard;

  const auto process = host(1).remote->start({.executable = "train", .member = 7}, heard.handlers());
  run_until([&] { return !heard.not_started.empty(); }, "the failure");

  EXPECT_EQ(heard.not_started[0].code(), ErrorCode::not_found);
  EXPECT_STREQ(heard.not_started[0].what(), "there is no program train");
  EXPECT_THAT(heard.order, IsEmpty());
}

TEST_F(PlayedRemoteHosts, CarryMessagesBothWays) {
  Heard heard;
  const auto process = start(1, 7, heard);

  process->send({.body = {{"kind", kStop}}});
  run_until([&] { return !host(1).played(7).sent.empty(); }, "the message");
  host(1).played(7).say({{"kind", kJoined}});
  run_until([&] { return heard.said.size() == 2; }, "the answer");

  EXPECT_EQ(host(1).played(7).sent[0], (nlohmann::json{{"kind", kStop}}));
  EXPECT_EQ(heard.said[1].at("kind"), kJoined);
  EXPECT_TRUE(host(1).played(7).is_watched_for_death);
}

// Descriptors cannot travel over a network.
TEST_F(PlayedRemoteHosts, AnswerRequestsForMemoryThemselves) {
  Heard heard;
  const auto process = start(1, 7, heard);
  open_generation(1, 3, {7});
  EXPECT_EQ(host(1).played(7).sent.back().at("kind"), kWelcome);

  host(1).played(7).say(arena_message(kArenaRequest, {.generation = 3, .number = 0}, sizeof(SignalWord)));

  EXPECT_EQ(host(1).played(7).sent.back().at("kind"), kArena);
  EXPECT_EQ(host(1).played(7).descriptors.back(), 1U);
  EXPECT_EQ(heard.said.size(), 1U);
}

TEST_F(PlayedRemoteHosts, ShowWhatTheirProcessesDo) {
  Heard heard;
  const auto process = start(1, 7, heard);

  host(1).played(7).heartbeat = {.progress = 99,
                                 .phase = Phase::saving,
                                 .step = 12,
                                 .steps = 4,
                                 .step_time = nanoseconds(8),
                                 .background = {.number = 2, .bytes = 4096, .is_callback = true}};
  run_until([&] { return process->step() == 12; }, "the status");

  const Heartbeat heartbeat = process->heartbeat(7, 5);
  EXPECT_EQ(heartbeat.member, 7);
  EXPECT_EQ(heartbeat.progress, 99U);
  EXPECT_EQ(heartbeat.phase, Phase::saving);
  EXPECT_EQ(heartbeat.steps, 4U);
  EXPECT_EQ(heartbeat.step_time, nanoseconds(8));
  EXPECT_EQ(heartbeat.arrivals, 5U);
  EXPECT_EQ(heartbeat.background.number, 2U);
  EXPECT_EQ(heartbeat.background.bytes, 4096U);
  EXPECT_TRUE(heartbeat.background.is_callback);
  const Load load = process->load(7, 3, 2);
  EXPECT_EQ(load.shards, 3);
  EXPECT_EQ(load.steps, 4U);
  EXPECT_EQ(load.computing, nanoseconds(5));
  EXPECT_EQ(load.waiting, nanoseconds(6));
  EXPECT_EQ(process->join_state(), JoinState::in_steps);
  EXPECT_EQ(process->samples(), 17U);
  EXPECT_EQ(process->what_in_background(), "fsync");
  EXPECT_TRUE(process->is_stopped());
  EXPECT_EQ(process->cpu_demand(), nanoseconds(7));
  EXPECT_EQ(host(1).remote->arrivals(7), 0U);
}

TEST_F(PlayedRemoteHosts, EndProcesses) {
  Heard heard;
  auto process = start(1, 7, heard);

  process->ask_to_leave(SIGTERM);
  process->kill();
  run_until([&] { return host(1).played(7).kills == 1; }, "the kill");
  EXPECT_THAT(host(1).played(7).signals, ElementsAre(SIGTERM));

  process.reset();
  run_until([&] { return host(1).played(7).is_dropped; }, "the end");
}

TEST_F(PlayedRemoteHosts, ReportHowAProcessEnded) {
  Heard heard;
  const auto process = start(1, 7, heard);
  Played& played = host(1).played(7);
  played.crash = Crash{.signal = SIGSEGV,
                       .frames = {{.address = 4096,
                                   .file_offset = 16,
                                   .path = "/bin/tr\xFF"
                                           "ain"}}};

  played.handlers.on_failure("no memory", true);
  played.handlers.on_death();
  played.handlers.on_swept(2, false);
  played.exit({.signal = SIGSEGV});
  run_until([&] { return heard.order.size() == 3; }, "the end");

  EXPECT_THAT(heard.failed, ElementsAre("no memory"));
  EXPECT_THAT(heard.order, ElementsAre("death", "swept 2", "exit"));
  EXPECT_EQ(heard.status.signal, SIGSEGV);
  ASSERT_TRUE(process->crash().has_value());
  EXPECT_EQ(process->crash()->frames[0].file_offset, 16U);
  // A path may be any bytes.
  EXPECT_EQ(process->crash()->frames[0].path, "/bin/tr\\xffain");
}

// The process has failed then, and not its host.
TEST_F(PlayedRemoteHosts, TakeAMessageThatTheHeadCannotReadForAFailureOfItsProcess) {
  std::vector<std::string> bad;
  Heard heard;
  ReplicaStarter::Handlers handlers = heard.handlers();
  handlers.on_message = [](Message& message) { static_cast<void>(message.body.at("generation").get<int>()); };
  handlers.on_bad_message = [&](const std::string& what) { bad.push_back(what); };
  const auto process = host(1).remote->start({.executable = "train", .member = 7}, std::move(handlers));
  run_until([&] { return process->pid() != 0; }, "the process");

  host(1).played(7).say({{"kind", kWork}});
  run_until([&] { return !bad.empty(); }, "the failure");

  EXPECT_THAT(bad[0], HasSubstr("generation"));
  EXPECT_TRUE(host(1).remote->is_there());
}

TEST_F(PlayedRemoteHosts, AreNotSentWhatCannotBeSent) {
  Heard heard;

  EXPECT_THROW(host(1).remote->start({.executable = "a\xFF", .member = 7}, heard.handlers()), Error);

  EXPECT_TRUE(host(1).remote->is_there());
}

TEST_F(PlayedRemoteHosts, HaveDevicesThatAreNotWatched) {
  EXPECT_THROW(host(1).remote->watch_devices({0}, {}), Error);
}

TEST_F(PlayedRemoteHosts, AreToldThatTheRunIsOver) {
  host(1).remote->end_run(75, "the run was stopped");
  run_until([&] { return !host(1).ends.empty(); }, "the end");

  EXPECT_EQ(host(1).ends[0].exit_code, 75);
  EXPECT_EQ(host(1).ends[0].sentence, "the run was stopped");
  EXPECT_THAT(host(1).lost, IsEmpty());
  EXPECT_TRUE(host(1).fence.has_run_out());
  EXPECT_FALSE(host(2).fence.has_run_out());
}

// An agent of the run that errs: it has the secret, and is played by the test.
class ErringAgent : public PlayedHosts {
 protected:
  explicit ErringAgent(const HostTimes& times = kPatientTimes) : PlayedHosts(times) {
    dial();
    run_until([&] { return agent_ != nullptr && is_asked_; }, "the agent");
  }
  ~ErringAgent() override {
    dialer_.reset();
    if (agent_ != nullptr) agent_->close();
  }

  void dial() {
    dialer_ = std::make_unique<HeadDialer>(
        loopback_.io, HostAddress{"127.0.0.2", listener_->port()}, tls_context(secret_of(1)), introduction_of(1),
        AgentConnection::Limits{.times = times_}, Deadline::after(kSurely),
        HeadDialer::Handlers{.on_taken = [this](const std::shared_ptr<AgentConnection>& taken) {
          agent_ = taken;
          agent_->set_handlers(
              {.on_message = [this](const nlohmann::json& message) { is_asked_ |= message.at("kind") == kResume; },
               .on_closed = [this, it = taken.get()](const std::string&) { is_closed_ |= it == agent_.get(); }});
        }});
  }

  void become_present() {
    agent_->send(presence_message({}));
    run_until([&] { return host(1).remote->is_there(); }, "the host");
  }

  std::unique_ptr<HeadDialer> dialer_;
  std::shared_ptr<AgentConnection> agent_;
  bool is_asked_ = false;
  bool is_closed_ = false;
};

TEST_F(ErringAgent, IsGivenUpForMessagesThatCannotBe) {
  const nlohmann::json status = status_message({.heartbeat = {.member = 7}});
  nlohmann::json without_phase = status;
  nlohmann::json in_no_phase = status;
  without_phase.erase("phase");
  in_no_phase["phase"] = 99;
  for (const nlohmann::json& message :
       {nlohmann::json{{"kind", "unknown"}, {"member", 7}}, nlohmann::json{{"kind", kSaid}},
        nlohmann::json{{"kind", kExited}, {"member", 7}, {"exit_code", "none"}, {"signal", 0}},
        nlohmann::json{{"kind", kStatuses}, {"statuses", {without_phase}}},
        nlohmann::json{{"kind", kStatuses}, {"statuses", {in_no_phase}}}, presence_message({})}) {
    agent_.reset();
    is_asked_ = false;
    is_closed_ = false;
    dial();
    run_until([&] { return agent_ != nullptr && is_asked_; }, "the agent");
    become_present();
    Heard heard;
    const auto process = host(1).remote->start({.executable = "train", .member = 7}, heard.handlers());

    agent_->send(message);
    run_until([&] { return is_closed_; }, "the end of the connection");

    EXPECT_FALSE(host(1).remote->is_there()) << message;
    EXPECT_THAT(heard.order, IsEmpty());
  }
  EXPECT_EQ(host(1).lost.size(), 6U);
}

TEST_F(ErringAgent, SaysWhichHostItDoesNotReach) {
  std::vector<std::string> unreached;
  host(1).remote->when_unreached([&](int generation, int peer, const std::string& why) {
    unreached.push_back(std::to_string(generation) + " " + std::to_string(peer) + " " + why);
  });
  become_present();

  agent_->send({{"kind", kUnreached}, {"generation", 3}, {"peer", 2}, {"what", "nobody answers"}});
  run_until([&] { return !unreached.empty(); }, "the news");

  EXPECT_THAT(unreached, ElementsAre("3 2 nobody answers"));
}

TEST_F(ErringAgent, IsGivenUpForNewsBeforeItsPresence) {
  agent_->send({{"kind", kDied}, {"member", 7}});
  run_until([&] { return is_closed_; }, "the end of the connection");

  EXPECT_THAT(host(1).present, IsEmpty());
  EXPECT_THAT(host(1).lost, IsEmpty());
}

TEST_F(ErringAgent, CannotSpeakOfProcessesThatTheHeadDoesNotKnow) {
  become_present();

  agent_->send({{"kind", kDied}, {"member", 7}});
  agent_->send(end_message({.member = -1}));
  agent_->send({{"kind", kStatuses}, {"statuses", {status_message({.heartbeat = {.member = 1 << 30}})}}});
  Heard heard;
  const auto process = host(1).remote->start({.executable = "train", .member = 7}, heard.handlers());
  agent_->send({{"kind", kStarted}, {"member", 7}, {"pid", 8}, {"at", 0}});
  run_until([&] { return process->pid() == 8; }, "what it may speak of");

  EXPECT_TRUE(host(1).remote->is_there());
}

TEST_F(ErringAgent, EndsAProcessOnce) {
  become_present();
  Heard heard;
  const auto process = host(1).remote->start({.executable = "train", .member = 7}, heard.handlers());

  agent_->send(end_message({.member = 7, .status = {.code = 3}}));
  agent_->send(end_message({.member = 7, .status = {.code = 4}}));
  agent_->send({{"kind", kDied}, {"member", 7}});
  agent_->send({{"kind", "unknown"}, {"member", 8}});
  agent_->send(presence_message({}));
  run_until([&] { return is_closed_; }, "the end of the connection");

  EXPECT_THAT(heard.order, ElementsAre("exit"));
  EXPECT_EQ(heard.status.code, 3);
}

// Its process may have come further. The host is not given up yet.
TEST_F(ErringAgent, LeavesItsProcessesUnjudgedWhileItSaysNothingOfThem) {
  become_present();
  Heard heard;
  const auto process = host(1).remote->start({.executable = "train", .member = 7}, heard.handlers());

  run_until([&] { return !process->heartbeat(7, 0).is_current; }, "an old status");

  EXPECT_TRUE(host(1).remote->is_there());
}

TEST_F(PlayedRemoteHosts, HaveProcessesOfWhichMuchIsHeard) {
  Heard heard;
  const auto process = start(1, 7, heard);
  host(1).played(7).heartbeat = {.step = 12};
  run_until([&] { return process->step() == 12; }, "the status");

  run_until([&] { return process->heartbeat(7, 0).is_current; }, "a status of this moment");
}

// The old connection may look open here for long, as after a change of its address.
TEST_F(ErringAgent, IsReplacedByOneThatDialsForTheSameHost) {
  become_present();

  start_agent(1);
  run_until([&] { return host(1).present.size() == 2; }, "the other agent");

  EXPECT_THAT(host(1).lost, ElementsAre("its agent has connected again"));
  run_until([&] { return is_closed_; }, "the end of the first connection");
}

class SilentAgent : public ErringAgent {
 protected:
  SilentAgent() : ErringAgent(kShortTimes) {}
};

// It sends beats, and never says what it has.
TEST_F(SilentAgent, IsGivenUpInTime) {
  run_until([&] { return is_closed_; }, "the end of the connection");

  EXPECT_THAT(host(1).present, IsEmpty());
  EXPECT_FALSE(host(1).remote->is_there());
}

}  // namespace
}  // namespace holdfast::recovery
