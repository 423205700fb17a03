// Two ends on sockets of this host. Peers without the secret are in agent_listener_test.cpp.

#include "hosts/agent_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct End {
  std::shared_ptr<AgentConnection> connection;
  bool is_secured = false;
  std::vector<nlohmann::json> messages;
  std::vector<std::string> closed;

  AgentConnection::Handlers handlers() {
    return {.on_secured = [this] { is_secured = true; },
            .on_message = [this](const nlohmann::json& message) { messages.push_back(message); },
            .on_closed = [this](const std::string& why) { closed.push_back(why); }};
  }
};

class Connection : public ::testing::Test {
 protected:
  void connect(const AgentConnection::Limits& limits = {}, unsigned char key_of_agent = 1,
               std::optional<AgentConnection::Limits> limits_of_agent = std::nullopt,
               boost::asio::io_context* io_of_agent = nullptr) {
    tcp::acceptor acceptor(loopback.io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket dialed(io_of_agent == nullptr ? loopback.io : *io_of_agent);
    dialed.connect(acceptor.local_endpoint());
    head.connection = AgentConnection::start(AgentConnection::Side::head, acceptor.accept(), tls_context(secret_of(1)),
                                             limits, head.handlers());
    agent.connection =
        AgentConnection::start(AgentConnection::Side::agent, std::move(dialed), tls_context(secret_of(key_of_agent)),
                               limits_of_agent.value_or(limits), agent.handlers());
  }

  void open(const AgentConnection::Limits& limits = {}) {
    connect(limits);
    loopback.run_until([&] { return head.is_secured && agent.is_secured; }, "the handshake");
    head.connection->open();
    agent.connection->open();
  }

  ~Connection() override {
    for (End* end : {&head, &agent}) {
      if (end->connection) end->connection->close();
    }
    loopback.io.restart();
    loopback.io.poll();
  }

  Loopback loopback;
  End head;
  End agent;
};

TEST_F(Connection, CarriesMessagesBothWaysInOrder) {
  open();

  for (int i = 0; i < 100; ++i) agent.connection->send({{"kind", "up"}, {"i", i}});
  head.connection->send({{"kind", "down"}, {"text", std::string(1'000'000, 'x')}});
  loopback.run_until([&] { return head.messages.size() == 100 && agent.messages.size() == 1; }, "the messages");

  for (int i = 0; i < 100; ++i) EXPECT_EQ(head.messages[i].at("i"), i);
  EXPECT_EQ(agent.messages[0].at("text").get<std::string>().size(), 1'000'000U);
}

TEST_F(Connection, AcknowledgesBeatsOfBothEnds) {
  open({.times = {.beat = milliseconds(1)}});
  const BootTime before = boot_time_now();

  loopback.run_until(
      [&] {
        return head.connection->beats().acknowledged() > before && agent.connection->beats().acknowledged() > before;
      },
      "an acknowledged beat of each end");

  EXPECT_GE(head.connection->beats().heard(), head.connection->beats().acknowledged());
}

TEST_F(Connection, IsClosedForAPeerThatAcknowledgesNothing) {
  const AgentConnection::Limits limits{
      .times = {.beat = milliseconds(5), .fence = milliseconds(20), .stop = milliseconds(5), .host = milliseconds(30)}};
  // The other end sends one beat, before it has heard any, and then no more.
  connect(limits, 1, AgentConnection::Limits{.times = {.beat = std::chrono::hours(1)}});
  loopback.run_until([&] { return head.is_secured && agent.is_secured; }, "the handshake");

  head.connection->open();
  agent.connection->open();
  loopback.run_until([&] { return !head.closed.empty(); }, "the end of the connection");

  EXPECT_THAT(head.closed, ElementsAre("it did not answer for 30 ms"));
}

TEST_F(Connection, IsClosedByABeatOrALongMessageBeforeItIsOpen) {
  connect();
  loopback.run_until([&] { return head.is_secured && agent.is_secured; }, "the handshake");
  agent.connection->open();  // it beats at once
  loopback.run_until([&] { return !head.closed.empty(); }, "the end of the connection");
  EXPECT_THAT(head.closed[0], HasSubstr("a beat before it was introduced"));

  head = {};
  agent = {};
  connect();
  loopback.run_until([&] { return head.is_secured && agent.is_secured; }, "the handshake");
  agent.connection->send({{"kind", std::string(kMostFirstFrameBytes, 'x')}});
  loopback.run_until([&] { return !head.closed.empty(); }, "the end of the connection");
  EXPECT_THAT(head.closed[0], HasSubstr("at most 65536 are possible"));
}

TEST_F(Connection, IsClosedForAPeerThatDoesNotIntroduceItself) {
  connect({.introduction = milliseconds(20)});

  loopback.run_until([&] { return !head.closed.empty(); }, "the end of the connection");

  EXPECT_THAT(head.closed[0], HasSubstr("it did not introduce itself within 20 ms"));
}

TEST_F(Connection, TellsTheOtherEndThatItIsClosed) {
  open();

  agent.connection->close();
  loopback.run_until([&] { return !head.closed.empty(); }, "the end of the connection");

  EXPECT_THAT(head.closed[0], HasSubstr("the connection was closed"));
  EXPECT_TRUE(agent.closed.empty());
}

TEST_F(Connection, SendsItsLastMessageBeforeItCloses) {
  open();

  agent.connection->send({{"kind", "last"}, {"text", std::string(3'000'000, 'x')}});
  int ends = 0;
  agent.connection->close_when_sent([&] { ++ends; });
  loopback.run_until([&] { return !head.closed.empty() && ends > 0; }, "the end of the connection");

  EXPECT_EQ(ends, 1);
  ASSERT_EQ(head.messages.size(), 1U);
  EXPECT_EQ(head.messages[0].at("kind"), "last");
}

// As a head that is killed after it has said that the run is over: its socket is closed with bytes that it has not
// read, so what the agent sends next fails, before the agent has read all that was sent to it.
TEST_F(Connection, ReadsTheLastMessageOfAPeerThatItCannotSendTo) {
  boost::asio::io_context io_of_agent(1);
  const auto poll = [](boost::asio::io_context& io) {
    io.restart();
    io.poll();
  };
  connect({}, 1, std::nullopt, &io_of_agent);
  for (const Deadline deadline = Deadline::after(kSurely); !head.is_secured || !agent.is_secured;) {
    ASSERT_FALSE(deadline.has_passed());
    poll(loopback.io);
    poll(io_of_agent);
  }

  head.connection->send({{"kind", "last"}, {"text", std::string(60'000, 'x')}});
  poll(loopback.io);
  agent.connection->send({{"kind", "unread"}});
  head.connection->close();
  agent.connection->send({{"kind", "late"}});
  for (const Deadline deadline = Deadline::after(kSurely); agent.closed.empty();) {
    ASSERT_FALSE(deadline.has_passed());
    poll(io_of_agent);
  }

  ASSERT_EQ(agent.messages.size(), 1U);
  EXPECT_EQ(agent.messages[0].at("kind"), "last");
  agent = {};  // before its io_context
}

// The caller counts on the call, and would wait for it without end.
TEST_F(Connection, SaysThatItIsClosedAlsoWhereItWasClosedBefore) {
  open();
  bool has_ended = false;

  agent.connection->close();
  agent.connection->close_when_sent([&] { has_ended = true; });

  EXPECT_FALSE(has_ended);
  loopback.run_until([&] { return has_ended; }, "the call");
}

TEST_F(Connection, WaitsUntilThePeerHasTakenItsLastMessage) {
  open();
  bool has_ended = false;

  head.connection->send({{"kind", "last"}});
  head.connection->close_when_sent([&] { has_ended = true; });
  loopback.run_until([&] { return !agent.messages.empty(); }, "the last message");

  EXPECT_FALSE(has_ended);
  agent.connection->close();
  loopback.run_until([&] { return has_ended; }, "the end of the connection");
}

TEST_F(Connection, IsClosedForAPeerThatDoesNotTakeItsMessages) {
  open({.queued_bytes = 100'000});

  // Sent faster than the thread that would write them gets to it.
  for (int i = 0; i < 200; ++i) agent.connection->send({{"kind", std::string(1000, 'x')}});
  loopback.run_until([&] { return !agent.closed.empty(); }, "the end of the connection");

  EXPECT_THAT(agent.closed[0], HasSubstr("it does not take its messages"));
}

TEST_F(Connection, NeedsTheSameSecretAtBothEnds) {
  connect({}, 2);

  loopback.run_until([&] { return !head.closed.empty() && !agent.closed.empty(); }, "the end of the connection");

  EXPECT_FALSE(head.is_secured);
  EXPECT_FALSE(agent.is_secured);
  EXPECT_THAT(head.closed[0], HasSubstr("does not have the secret of the run"));
}

}  // namespace
}  // namespace holdfast::recovery
