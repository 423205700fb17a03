// An agent that dials a head which is not there, comes late, or says something else. Answers of a head that is there
// are in agent_listener_test.cpp.

#include "hosts/head_dialer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "free_port.h"
#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Dialer : public ::testing::Test {
 protected:
  void dial(HostAddress head, Deadline deadline = Deadline::after(kSurely)) {
    dialer = std::make_unique<HeadDialer>(
        loopback.io, std::move(head), tls_context(secret_of(1)), introduction_of(1), AgentConnection::Limits{},
        deadline,
        HeadDialer::Handlers{
            .on_taken = [this](const std::shared_ptr<AgentConnection>& connection) { taken = connection; },
            .on_sent_home = [this](const std::string& why) { last = why; },
            .on_given_up = [this](const std::string& why) { last = why; },
            .on_failure = [this](const std::string& why) { failures.push_back(why); }});
  }

  ~Dialer() override {
    dialer.reset();
    if (taken) taken->close();
    loopback.io.restart();
    loopback.io.poll();
  }

  Loopback loopback;
  std::unique_ptr<HeadDialer> dialer;
  std::shared_ptr<AgentConnection> taken;
  std::string last;
  std::vector<std::string> failures;
};

TEST_F(Dialer, GivesUpAtItsDeadline) {
  dial({"127.0.0.1", resilience::free_port()}, Deadline::after(milliseconds(50)));

  loopback.run_until([&] { return !last.empty(); }, "the end");

  EXPECT_THAT(last, AllOf(HasSubstr("the head at 127.0.0.1:"), HasSubstr("cannot be reached: Connection refused")));
}

TEST_F(Dialer, WaitsForAHeadThatStartsLater) {
  const int port = resilience::free_port();
  dial({"127.0.0.1", port});
  loopback.run_until([&] { return !failures.empty(); }, "a failed attempt");

  const AgentListener head(loopback.io, port, tls_context(secret_of(1)), introduction_of(0), {}, {});
  loopback.run_until([&] { return taken != nullptr; }, "the connection");

  EXPECT_TRUE(taken->is_open());
  EXPECT_EQ(last, "");
}

TEST_F(Dialer, SaysThatANameIsNotKnown) {
  // Longer than a part of a name may be, so no server is asked.
  dial({std::string(64, 'a'), 1});

  loopback.run_until([&] { return !failures.empty(); }, "a failed attempt");

  EXPECT_THAT(failures[0], HasSubstr("cannot be reached: its name is not known"));
}

TEST_F(Dialer, TriesAgainAfterAnAnswerThatIsNotOne) {
  tcp::acceptor acceptor(loopback.io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  std::shared_ptr<AgentConnection> odd;
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    odd = AgentConnection::start(AgentConnection::Side::head, std::move(socket), tls_context(secret_of(1)), {},
                                 {.on_message = [&](const nlohmann::json&) {
                                   odd->send({{"kind", "hello"}});
                                 }});
  });

  dial({"127.0.0.1", acceptor.local_endpoint().port()});
  loopback.run_until([&] { return !failures.empty(); }, "a failed attempt");

  EXPECT_THAT(failures[0], HasSubstr("it sent something else than an answer"));
  odd->close();
}

TEST_F(Dialer, CanBeDroppedAtAnyTime) {
  dial({"127.0.0.1", resilience::free_port()});
  dialer.reset();
  loopback.io.poll();
  dial({"127.0.0.1", resilience::free_port()});
  loopback.run_until([&] { return !failures.empty(); }, "a failed attempt");

  dialer.reset();
  loopback.io.restart();

  EXPECT_NO_THROW(loopback.io.poll());
  EXPECT_EQ(last, "");
}

}  // namespace
}  // namespace holdfast::recovery
