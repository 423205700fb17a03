// The head's door: agents of the run come in, all else is refused while others come in. A stranger here is a plain
// socket, or a server that has a certificate instead of the secret.

#include "hosts/agent_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <string>
#include <utility>
#include <vector>

#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Listener : public ::testing::Test {
 protected:
  struct Dialed {
    std::shared_ptr<AgentConnection> taken;
    std::vector<std::string> sent_home;
    std::vector<std::string> given_up;
    std::vector<std::string> failures;
    std::unique_ptr<HeadDialer> dialer;
  };

  void listen(const AgentConnection::Limits& limits = {}) {
    listener.emplace(loopback.io, 0, tls_context(secret_of(1)), introduction_of(0), limits,
                     AgentListener::Handlers{
                         .why_not = [this](const Introduction&) { return why_not; },
                         .on_agent =
                             [this](const Introduction& theirs, const std::shared_ptr<AgentConnection>& connection) {
                               hosts.push_back(theirs.host);
                               agents.push_back(connection);
                             },
                         .on_refused = [this](const std::string& peer,
                                              const std::string& why) { refused.push_back(peer + ": " + why); }});
  }

  std::unique_ptr<Dialed> dial(const Introduction& introduction, const Secret& secret = secret_of(1),
                               Deadline deadline = Deadline::after(kSurely), int port = 0) {
    auto dialed = std::make_unique<Dialed>();
    Dialed* told = dialed.get();
    dialed->dialer = std::make_unique<HeadDialer>(
        loopback.io, HostAddress{"127.0.0.1", port == 0 ? listener->port() : port}, tls_context(secret), introduction,
        AgentConnection::Limits{}, deadline,
        HeadDialer::Handlers{
            .on_taken = [told](const std::shared_ptr<AgentConnection>& connection) { told->taken = connection; },
            .on_sent_home = [told](const std::string& why) { told->sent_home.push_back(why); },
            .on_given_up = [told](const std::string& why) { told->given_up.push_back(why); },
            .on_failure = [told](const std::string& why) { told->failures.push_back(why); }});
    return dialed;
  }

  tcp::socket stranger() {
    tcp::socket socket(loopback.io);
    socket.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(listener->port())});
    return socket;
  }

  ~Listener() override {
    listener.reset();
    for (const auto& agent : agents) agent->close();
    loopback.io.restart();
    loopback.io.poll();
  }

  Loopback loopback;
  std::optional<AgentListener> listener;
  std::string why_not;
  std::vector<int> hosts;
  std::vector<std::shared_ptr<AgentConnection>> agents;
  std::vector<std::string> refused;
};

TEST_F(Listener, TakesAgentsOfTheRun) {
  listen();

  const auto second = dial(introduction_of(2));
  const auto first = dial(introduction_of(1));
  loopback.run_until([&] { return first->taken && second->taken && agents.size() == 2; }, "both agents");

  EXPECT_THAT(hosts, ::testing::UnorderedElementsAre(1, 2));
  EXPECT_TRUE(first->taken->is_open());
  EXPECT_TRUE(agents[0]->is_open());
  EXPECT_EQ(listener->strangers(), 0U);
  EXPECT_TRUE(refused.empty());
  first->taken->close();
  second->taken->close();
}

TEST_F(Listener, SendsHomeWhoDiffersAndSaysWhyAtBothEnds) {
  listen();
  Introduction other = introduction_of(1);
  other.program = "c3";

  const auto dialed = dial(other);
  loopback.run_until([&] { return !dialed->sent_home.empty(); }, "the answer");

  EXPECT_THAT(dialed->sent_home, ElementsAre(AllOf(HasSubstr("refuses this host: its program is not that of host 0"),
                                                   HasSubstr("127.0.0.1:"))));
  EXPECT_THAT(refused, ElementsAre(HasSubstr("its program is not that of host 0")));
  EXPECT_TRUE(dialed->failures.empty());
  EXPECT_TRUE(agents.empty());
}

TEST_F(Listener, SendsHomeWhomTheHeadDoesNotWant) {
  listen();
  why_not = "host 1 is there already";

  const auto dialed = dial(introduction_of(1));
  loopback.run_until([&] { return !dialed->sent_home.empty(); }, "the answer");

  EXPECT_THAT(dialed->sent_home, ElementsAre(HasSubstr("host 1 is there already")));
}

TEST_F(Listener, RefusesAWrongSecretWhileOthersComeIn) {
  listen();

  const auto wrong = dial(introduction_of(1), secret_of(2));
  const auto right = dial(introduction_of(2));
  loopback.run_until([&] { return right->taken && !wrong->failures.empty() && !refused.empty(); }, "both ends");

  EXPECT_THAT(hosts, ElementsAre(2));
  EXPECT_THAT(wrong->failures[0], HasSubstr("does not have the secret of the run"));
  EXPECT_THAT(refused[0], HasSubstr("does not have the secret of the run"));
  right->taken->close();
}

TEST_F(Listener, RefusesGarbage) {
  listen();
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\0'),
                                     std::string("\x16\x03\x01\xff\xff") + std::string(70'000, 'x')}) {
    const std::size_t before = refused.size();
    tcp::socket socket = stranger();

    boost::system::error_code ignored;
    asio::write(socket, asio::buffer(garbage), ignored);
    loopback.run_until([&] { return refused.size() > before; }, "the refusal");

    EXPECT_THAT(refused.back(), HasSubstr("127.0.0.1:"));
  }
  EXPECT_TRUE(agents.empty());
  EXPECT_EQ(listener->strangers(), 0U);
}

// Two hundred connections that say nothing cost an agent nothing, and are gone when their time is over.
TEST_F(Listener, TakesAgentsWhileStrangersHoldConnections) {
  listen({.introduction = milliseconds(300)});
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(stranger());
  loopback.run_until([&] { return refused.size() >= 168; }, "the oldest are driven out");
  EXPECT_LE(listener->strangers(), 32U);

  const auto dialed = dial(introduction_of(1));
  loopback.run_until([&] { return dialed->taken != nullptr; }, "the agent");
  loopback.run_until([&] { return listener->strangers() == 0; }, "the end of their time");

  // One of them had to go for the agent.
  EXPECT_EQ(refused.size(), 200U);
  EXPECT_THAT(refused.front(), HasSubstr("newer connections"));
  EXPECT_THAT(refused.back(), HasSubstr("did not introduce itself within 300 ms"));
  dialed->taken->close();
}

TEST_F(Listener, RefusesAMessageThatIsNotAnIntroduction) {
  listen();
  tcp::socket socket = stranger();
  bool is_secured = false;

  const auto peer = AgentConnection::start(AgentConnection::Side::agent, std::move(socket), tls_context(secret_of(1)),
                                           {}, {.on_secured = [&] { is_secured = true; }});
  loopback.run_until([&] { return is_secured; }, "the handshake");
  peer->send({{"kind", "taken"}});
  loopback.run_until([&] { return !refused.empty(); }, "the refusal");

  EXPECT_THAT(refused[0], HasSubstr("before it had introduced itself"));
  peer->close();
}

// What was recorded of a connection opens no other: each has numbers of its own.
TEST_F(Listener, RefusesARecordOfAnotherConnection) {
  listen();
  // Stands between an agent and the head, and keeps what the agent says.
  tcp::acceptor between(loopback.io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const auto dialed = dial(introduction_of(1), secret_of(1), Deadline::after(kSurely), between.local_endpoint().port());
  tcp::socket from_agent(loopback.io);
  bool is_accepted = false;
  between.async_accept(from_agent, [&](const boost::system::error_code&) { is_accepted = true; });
  loopback.run_until([&] { return is_accepted; }, "the dial");
  tcp::socket to_head = stranger();
  std::string record;
  std::array<char, 4096> up{};
  std::array<char, 4096> down{};
  std::function<void()> pass_up = [&] {
    from_agent.async_read_some(asio::buffer(up), [&](const boost::system::error_code& error, std::size_t bytes) {
      if (error) return;
      record.append(up.data(), bytes);
      asio::write(to_head, asio::buffer(up, bytes));
      pass_up();
    });
  };
  std::function<void()> pass_down = [&] {
    to_head.async_read_some(asio::buffer(down), [&](const boost::system::error_code& error, std::size_t bytes) {
      if (error) return;
      asio::write(from_agent, asio::buffer(down, bytes));
      pass_down();
    });
  };
  pass_up();
  pass_down();
  loopback.run_until([&] { return dialed->taken && agents.size() == 1; }, "the agent");

  tcp::socket replay = stranger();
  asio::write(replay, asio::buffer(record));
  loopback.run_until([&] { return !refused.empty(); }, "the refusal");

  EXPECT_EQ(agents.size(), 1U);
  EXPECT_TRUE(agents[0]->is_open());
  dialed->taken->close();
  from_agent.close();
  to_head.close();
  loopback.io.poll();
}

TEST_F(Listener, SaysWhichPortItCannotHave) {
  listen();

  try {
    const AgentListener second(loopback.io, listener->port(), tls_context(secret_of(1)), introduction_of(0), {}, {});
    FAIL() << "two listen on one port";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot listen on port " + std::to_string(listener->port())));
  }
}

// A certificate of its own, which nobody vouches for.
std::shared_ptr<asio::ssl::context> with_certificate() {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls);
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* certificate = ::X509_new();
  ::X509_set_version(certificate, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate), -3600);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate), 3600);
  ::X509_set_pubkey(certificate, key);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("head"), -1, -1, 0);
  ::X509_set_issuer_name(certificate, ::X509_get_subject_name(certificate));
  ::X509_sign(certificate, key, ::EVP_sha256());
  EXPECT_EQ(::SSL_CTX_use_certificate(context->native_handle(), certificate), 1);
  EXPECT_EQ(::SSL_CTX_use_PrivateKey(context->native_handle(), key), 1);
  ::X509_free(certificate);
  ::EVP_PKEY_free(key);
  return context;
}

TEST(AgentThatDials, IsNotContentWithACertificate) {
  Loopback loopback;
  tcp::acceptor acceptor(loopback.io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::socket dialed(loopback.io);
  dialed.connect(acceptor.local_endpoint());
  const auto context = with_certificate();
  TlsStream impostor(acceptor.accept(), *context);
  impostor.async_handshake(asio::ssl::stream_base::server, [](const boost::system::error_code&) {});
  bool is_secured = false;
  std::string why;

  const auto agent = AgentConnection::start(
      AgentConnection::Side::agent, std::move(dialed), tls_context(secret_of(1)), {},
      {.on_secured = [&] { is_secured = true; }, .on_closed = [&](const std::string& reason) { why = reason; }});
  loopback.run_until([&] { return is_secured || !why.empty(); }, "an end of the handshake");

  EXPECT_FALSE(is_secured);
  EXPECT_THAT(why, HasSubstr("certificate verify failed"));
  impostor.next_layer().close();
  loopback.io.restart();
  loopback.io.poll();
}

}  // namespace
}  // namespace holdfast::recovery
