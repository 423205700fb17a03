// What is left of a host when its head is lost, and what it has to say when it is back. Networks are cut at each side.

#include "agents/agent_service.h"

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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LostHead : public PlayedHosts {
 protected:
  explicit LostHead(const HostTimes& times = kPatientTimes) : PlayedHosts(times) { start_agent_and_wait(1); }

  void wait_for_loss_there() {
    run_until([&] { return host(1).fence.has_run_out(); }, "the fence");
  }
  void wait_for_return() {
    const std::size_t before = host(1).present.size();
    run_until([&] { return host(1).present.size() > before; }, "the return");
  }
  void check_in(int member, int generation, std::int64_t step) {
    host(1).played(member).say({{"kind", kCheckedIn}, {"generation", generation}, {"step", step}});
  }
};

TEST_F(LostHead, EndsTheGenerationAtOnce) {
  Heard heard;
  const auto process = start(1, 7, heard);
  open_generation(1, 3, {7});

  host(1).network->close();
  wait_for_loss_there();
  run_until([&] { return !host(1).lost.empty(); }, "the loss at the head");

  // A request for memory is refused from then on.
  host(1).played(7).say(arena_message(kArenaRequest, {.generation = 3, .number = 0}, sizeof(SignalWord)));
  EXPECT_EQ(host(1).played(7).sent.back().at("error"), "generation 3 was ended");
  EXPECT_FALSE(host(1).remote->is_there());
  EXPECT_EQ(host(1).played(7).kills, 0);
  // The head counts from when it heard the agent last, and adds a tenth for a slow clock.
  EXPECT_GT(host(1).fenced_at[0], boot_time_now());
  check_in(7, 3, 12);
}

TEST_F(LostHead, KeepsTheStatesOfThoseThatCheckIn) {
  Heard first;
  Heard second;
  Heard third;
  const auto training = start(1, 7, first);
  const auto training_too = start(1, 8, second);
  const auto spare = start(1, 9, third);
  open_generation(1, 3, {7, 8});

  host(1).network->close();
  wait_for_loss_there();
  check_in(7, 3, 12);
  check_in(8, 3, -1);
  wait_for_return();

  EXPECT_THAT(host(1).present.back(), ElementsAre(7, 8, 9));
  EXPECT_THAT(host(1).steps.back(), ElementsAre(12, -1, -1));
  for (const int member : {7, 8, 9}) EXPECT_EQ(host(1).played(member).kills, 0);
  EXPECT_FALSE(host(1).fence.has_run_out());
}

TEST_F(LostHead, TakesMembersIntoGenerationsAgainOnceItIsBack) {
  Heard heard;
  const auto process = start(1, 7, heard);
  open_generation(1, 3, {7});
  host(1).network->close();
  wait_for_loss_there();
  check_in(7, 3, 12);
  wait_for_return();

  open_generation(1, 4, {7});

  EXPECT_EQ(host(1).played(7).sent.back().at("generation"), 4);
}

TEST_F(LostHead, LearnsOfEndsThatItHasMissed) {
  Heard first;
  Heard second;
  const auto process = start(1, 7, first);
  const auto other = start(1, 8, second);

  host(1).network->close();
  wait_for_loss_there();
  host(1).played(7).exit({.code = 3});
  wait_for_return();
  run_until([&] { return !first.order.empty(); }, "the end");

  EXPECT_THAT(host(1).present.back(), ElementsAre(8));
  EXPECT_EQ(first.status.code, 3);
  EXPECT_THAT(second.order, IsEmpty());
}

TEST_F(LostHead, EndsOnItsReturnWhatItHasForgottenOrKilledMeanwhile) {
  Heard first;
  Heard second;
  auto forgotten = start(1, 7, first);
  const auto killed = start(1, 8, second);
  host(1).network->close();
  wait_for_loss_there();
  run_until([&] { return !host(1).lost.empty(); }, "the loss at the head");

  forgotten.reset();
  killed->kill();
  wait_for_return();
  run_until([&] { return host(1).played(8).kills == 1; }, "the kill");

  EXPECT_TRUE(host(1).played(7).is_dropped);
  EXPECT_THAT(host(1).present.back(), IsEmpty());
}

TEST_F(LostHead, RefusesToStartAnythingMeanwhile) {
  Heard heard;
  const auto process = start(1, 7, heard);
  host(1).network->close();
  run_until([&] { return !host(1).lost.empty(); }, "the loss at the head");

  EXPECT_THROW(process->send({.body = {{"kind", kStop}}}), Error);
  Heard of_the_next;
  EXPECT_THROW(host(1).remote->start({.executable = "train", .member = 8}, of_the_next.handlers()), Error);
  // Nothing of this is sent later.
  host(1).remote->open_generation({.number = 3, .members = {7}});
  process->ask_to_leave(SIGTERM);
  wait_for_return();

  EXPECT_THAT(host(1).played(7).sent, IsEmpty());
  EXPECT_THAT(host(1).played(7).signals, IsEmpty());
}

// An agent that was killed, and started again by its launcher: the kernel has killed its processes.
TEST_F(LostHead, LearnsThatProcessesOfAnEarlierAgentAreGone) {
  Heard heard;
  const auto process = start(1, 7, heard);

  host(1).agent.reset();
  run_until([&] { return !host(1).lost.empty(); }, "the loss at the head");
  start_agent_and_wait(1);
  run_until([&] { return !heard.order.empty(); }, "the end");

  EXPECT_EQ(heard.status.signal, SIGKILL);
}

TEST_F(LostHead, LosesNoOtherHost) {
  start_agent_and_wait(2);
  Heard heard;
  const auto process = start(2, 8, heard);

  host(1).network->close();
  wait_for_loss_there();
  wait_for_return();

  EXPECT_TRUE(host(2).remote->is_there());
  EXPECT_THAT(host(2).lost, IsEmpty());
}

class HeadThatIsCutOff : public LostHead {
 protected:
  HeadThatIsCutOff() : LostHead(kShortTimes) {}

  void cut_and_wait_for_return(Relay::Cut how) {
    Heard heard;
    const auto process = start(1, 7, heard);
    open_generation(1, 3, {7});

    host(1).network->cut(how);
    wait_for_loss_there();
    run_until([&] { return !host(1).lost.empty(); }, "the loss at the head");
    wait_for_return();

    // It did not leave its generation within HostTimes::stop.
    EXPECT_GE(host(1).played(7).kills, 1);
    EXPECT_THAT(host(1).present.back(), IsEmpty());
  }
};

TEST_F(HeadThatIsCutOff, IsNoticedAtBothEnds) {
  cut_and_wait_for_return(Relay::Cut::both);
}

// Its beats arrive here, and those of this host do not arrive there.
TEST_F(HeadThatIsCutOff, IsNoticedWhereOnlyTheAgentIsNotHeard) {
  cut_and_wait_for_return(Relay::Cut::to_head);
}

TEST_F(HeadThatIsCutOff, IsNoticedWhereOnlyTheHeadIsNotHeard) {
  cut_and_wait_for_return(Relay::Cut::to_agent);
}

// A head that errs: it has the secret, and is played by the test.
class ErringHead : public ::testing::Test {
 protected:
  ErringHead() {
    listener_ = std::make_unique<AgentListener>(
        loopback_.io, 0, tls_context(secret_of(1)), introduction_of(0), AgentConnection::Limits{.times = kPatientTimes},
        AgentListener::Handlers{
            .on_agent = [this](const Introduction&, const std::shared_ptr<AgentConnection>& connection) {
              if (head_ != nullptr) head_->close();
              head_ = connection;
              ++connections_;
              head_->set_handlers({.on_message = [this](const nlohmann::json& message) {
                if (message.at("kind") == kPresent) ++presences_;
                if (message.at("kind") == kStarted) ++started_;
              }});
            }});
    auto starter = std::make_unique<PlayedStarter>();
    starter_ = starter.get();
    agent_ = std::make_unique<Agent>(loopback_.io,
                                     AgentOptions{.head = {"127.0.0.3", listener_->port()},
                                                  .introduction = introduction_of(1),
                                                  .limits = {.times = kPatientTimes},
                                                  .join_timeout = kSurely,
                                                  .patience = kSurely},
                                     secret_of(1), local_host(loopback_.io, std::move(starter), {}), fence_,
                                     Agent::Handlers{.on_news = [this](const std::string& what) { news_ = what; }});
    loopback_.run_until([&] { return connections_ == 1; }, "the agent");
  }
  ~ErringHead() override {
    agent_.reset();
    listener_.reset();
    if (head_ != nullptr) head_->close();
    loopback_.io.restart();
    loopback_.io.poll();
  }

  void resume(const std::string& mark = "") {
    const int before = presences_;
    head_->send({{"kind", kResume}, {"members", nlohmann::json::array()}, {"folder", to_json({.mark = mark})}});
    loopback_.run_until([&] { return presences_ > before; }, "the presence");
  }
  // The agent closes the connection, and dials again.
  void expect_refusal(const nlohmann::json& message) {
    const int before = connections_;
    head_->send(message);
    loopback_.run_until([&] { return connections_ > before; }, "the next connection");
  }

  Loopback loopback_;
  Fence fence_;
  PlayedStarter* starter_ = nullptr;
  std::unique_ptr<AgentListener> listener_;
  std::unique_ptr<Agent> agent_;
  std::shared_ptr<AgentConnection> head_;
  int connections_ = 0;
  int presences_ = 0;
  int started_ = 0;
  std::string news_;
};

TEST_F(ErringHead, IsNotObeyedBeforeItHasResumed) {
  expect_refusal(start_message({.executable = "train", .member = 7}));

  EXPECT_THAT(starter_->played, IsEmpty());
}

TEST_F(ErringHead, IsNotObeyedWhereItsOrdersCannotBe) {
  for (const nlohmann::json& message :
       {nlohmann::json{{"kind", "unknown"}, {"member", 7}}, nlohmann::json{{"kind", kKill}},
        nlohmann::json{{"kind", kStartProcess}, {"member", "seven"}},
        nlohmann::json{{"kind", kResume}, {"members", nlohmann::json::array()}, {"folder", to_json(FolderOfHead{})}}}) {
    resume();
    expect_refusal(message);
  }

  EXPECT_THAT(starter_->played, IsEmpty());
}

TEST_F(ErringHead, CannotOpenAGenerationOnceMore) {
  resume();
  head_->send(generation_message({.number = 3}));
  expect_refusal(generation_message({.number = 3}));
  resume();
  expect_refusal(generation_message({.number = 2}));
}

// The journal of a head that was started again may lack the newest generations of the one before.
TEST_F(ErringHead, MayCountFromALowerNumberOnceItWasStartedAgain) {
  resume("first");
  head_->send(generation_message({.number = 3}));
  expect_refusal(generation_message({.number = 3}));
  resume("second");
  const int connections = connections_;

  head_->send(generation_message({.number = 2}));
  head_->send(start_message({.executable = "train", .member = 7}));
  loopback_.run_until([&] { return started_ == 1; }, "the process");

  EXPECT_EQ(connections_, connections);
}

TEST_F(ErringHead, CannotStartAProcessTwice) {
  resume();
  head_->send(start_message({.executable = "train", .member = 7}));
  loopback_.run_until([&] { return started_ == 1; }, "the process");
  // One that is ready is kept, and the agent dials at once.
  starter_->played.at(7).say({{"kind", kReady}});

  expect_refusal(start_message({.executable = "train", .member = 7}));

  EXPECT_EQ(started_, 1);
  EXPECT_FALSE(starter_->played.at(7).is_dropped);
}

}  // namespace
}  // namespace holdfast::recovery
