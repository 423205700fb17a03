// How an agent ends: sent home, given up, and told that the run is over. And what it is for: a process that outlives
// the loss of its head.

#include "agents/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "channel/messages.h"
#include "holdfast/recovery/watchdog.h"
#include "process/local_replicas.h"
#include "support/program.h"
#include "unit/recovery/support/complaint.h"
#include "unit/recovery/support/played_hosts.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AgentOfAHost : public PlayedHosts {
 protected:
  Agent::End end_of(int number) {
    run_until([&] { return !host(number).ends.empty(); }, "the end of the agent");
    EXPECT_EQ(host(number).ends.size(), 1U);
    return host(number).ends.front();
  }
};

TEST_F(AgentOfAHost, SaysWhatItDoes) {
  start_agent_and_wait(1);
  host(1).network->close();
  run_until([&] { return host(1).news.size() >= 3; }, "the return");

  EXPECT_THAT(host(1).news[0], HasSubstr("the head at 127.0.0.2:"));
  EXPECT_THAT(host(1).news[1], HasSubstr("the head was lost: "));
}

TEST_F(AgentOfAHost, EndsWhenItIsSentHome) {
  AgentOptions other = options_of(1);
  other.introduction.program = "c3";

  start_agent(1, other);

  const Agent::End end = end_of(1);
  EXPECT_EQ(end.exit_code, kExitUnrecoverable);
  EXPECT_THAT(end.sentence, HasSubstr("its program is not that of host 0"));
}

TEST_F(AgentOfAHost, EndsWhenNoHeadIsReachedInTime) {
  AgentOptions options = options_of(2);
  options.head.port = 1;  // nobody listens there
  options.join_timeout = milliseconds(50);

  start_agent(2, options);

  const Agent::End end = end_of(2);
  EXPECT_EQ(end.exit_code, kExitStopped);
  EXPECT_THAT(end.sentence, HasSubstr("the head at 127.0.0.3:1 cannot be reached"));
  EXPECT_THAT(host(2).present, IsEmpty());
}

// Its owner saves the newest state in memory then.
TEST_F(AgentOfAHost, EndsWithoutAHeadWhenItIsAskedToLeaveAndTheHeadIsLost) {
  start_agent_and_wait(1);

  host(1).network->close();
  run_until([&] { return host(1).agent->is_head_lost(); }, "the loss");
  host(1).agent->ask_to_leave(SIGTERM);

  const Agent::End end = end_of(1);
  EXPECT_EQ(end.exit_code, kExitStopped);
  EXPECT_TRUE(end.is_head_lost);
  EXPECT_THAT(end.sentence, HasSubstr("was asked to leave after it had lost the head"));
}

TEST_F(AgentOfAHost, SaysThatNoHeadHasTakenItWhenItIsAskedToLeaveBefore) {
  AgentOptions options;
  options.head = {"127.0.0.3", 1};
  start_agent(2, options);

  host(2).agent->ask_to_leave(SIGTERM);

  const Agent::End end = end_of(2);
  EXPECT_EQ(end.exit_code, kExitStopped);
  EXPECT_FALSE(end.is_head_lost);
  EXPECT_THAT(end.sentence, HasSubstr("was asked to leave before the head had taken it"));
}

// Its owner does what it likes with it then.
TEST_F(AgentOfAHost, MayBeEndedByTheHandlerOfItsEnd) {
  start_agent_and_wait(1);
  bool is_over = false;
  auto starter = std::make_unique<PlayedStarter>();
  Fence fence;
  std::unique_ptr<Agent> agent;
  agent = std::make_unique<Agent>(loopback_.io,
                                  AgentOptions{.head = {"127.0.0.3", host(2).network->port()},
                                               .introduction = introduction_of(2),
                                               .limits = {.times = times_}},
                                  secret_of(1), local_host(loopback_.io, std::move(starter), {}), fence,
                                  Agent::Handlers{.on_over = [&](const Agent::End&) {
                                    agent.reset();
                                    is_over = true;
                                  }});
  run_until([&] { return host(2).remote->is_there(); }, "the host");

  host(2).remote->end_run(kExitFinished, "the run has finished");
  run_until([&] { return is_over; }, "the end");

  EXPECT_TRUE(fence.has_run_out());
  EXPECT_TRUE(host(1).remote->is_there());
}

// A worker of a program of its own, with the memory of this host: it trains until the fence has run out, keeps its
// process, and finishes in a generation that begins when its host is back.
TEST_F(AgentOfAHost, BringsARealProcessThroughALossOfTheHead) {
  const SharedMemory lock = SharedMemory::create("lock", 1);
  start_agent_with(1, options_of(1),
                   local_replicas(
                       loopback_.io, lock.descriptor(), [] {}, &host(1).fence));
  run_until([&] { return host(1).remote->is_there(); }, "the host");
  Heard heard;
  const auto has_said = [&](const std::string& kind) {
    return std::any_of(heard.said.begin(), heard.said.end(), [&](const auto& body) { return body.at("kind") == kind; });
  };

  const auto process = host(1).remote->start(
      {.executable = built_program("recovery_worker"),
       .arguments = {"recovery_worker", "run", "1", "until_fenced@0:3", "arenas@0:4", "finish@0:4"},
       .member = 5},
      heard.handlers());
  process->send({.body = hello_message({.replicas = 1, .patience = kSurely, .run_directory = "run"})});
  run_until([&] { return has_said(kReady); }, "the start");
  host(1).remote->open_generation({.number = 3, .members = {5}});
  run_until([&] { return has_said(kEvent) && process->step() > 0; }, "its steps");
  const int pid = process->pid();
  host(1).network->close();
  run_until([&] { return host(1).present.size() == 2; }, "the return");
  EXPECT_THAT(host(1).present.back(), ElementsAre(5));
  EXPECT_THAT(host(1).steps.back(), ElementsAre(-1));
  host(1).remote->open_generation({.number = 4, .members = {5}});
  run_until([&] { return !heard.order.empty(); }, "the end of the process");

  EXPECT_TRUE(has_said(kFinished));
  EXPECT_THAT(heard.order, ElementsAre("exit"));
  EXPECT_EQ(heard.status.code, 0);
  EXPECT_EQ(process->pid(), pid);
  EXPECT_THAT(heard.bad, IsEmpty());
}

TEST_F(AgentOfAHost, RefusesTimesThatCannotBe) {
  Fence fence;

  EXPECT_THAT(complaint_about([&] {
                const Agent agent(loopback_.io, AgentOptions{.limits = {.times = {.host = milliseconds(1)}}},
                                  secret_of(1), nullptr, fence, {});
              }),
              HasSubstr("is given up after 1 ms"));
}

}  // namespace
}  // namespace holdfast::recovery
