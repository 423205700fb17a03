// How a connection for replicas is made, also to a host that is not ready for it, and to none.

#include "links/link_dialer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>

#include "links/link_listener.h"
#include "unit/recovery/support/link_ends.h"
#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class LinksThatAreMade : public ::testing::Test {
 protected:
  void dial(const HostAddress& address, milliseconds patience = kSurely) {
    dialer_ = std::make_unique<LinkDialer>(
        loopback_.io, address, token_, patience,
        LinkDialer::Handlers{.on_link = [this](FileDescriptor socket) { made_.push_back(std::move(socket)); },
                             .on_given_up = [this](const std::string& why) { given_up_.push_back(why); }});
  }

  Loopback loopback_;
  const LinkToken token_{.key = new_link_key(), .exchange = 0, .lane = 0};
  std::unique_ptr<LinkDialer> dialer_;
  std::vector<FileDescriptor> made_;
  std::vector<std::string> given_up_;
};

TEST_F(LinksThatAreMade, ReachTheOtherHostByAddressAndByName) {
  LinkListener listener(loopback_.io);
  std::vector<FileDescriptor> taken;
  for (const char* host : {"127.0.0.3", "localhost"}) {
    listener.expect(token_, [&](FileDescriptor socket) { taken.push_back(std::move(socket)); });
    dial({host, listener.port()});
    const std::size_t before = made_.size();
    loopback_.run_until([&] { return made_.size() > before && taken.size() > before; }, host);

    EXPECT_TRUE(are_connected(made_.back(), taken.back()));
  }
  EXPECT_TRUE(given_up_.empty());
}

// A host that closes the connection is dialed again.
TEST_F(LinksThatAreMade, AreTriedUntilTheOtherHostExpectsThem) {
  boost::asio::ip::tcp::acceptor closing(loopback_.io, {boost::asio::ip::make_address("127.0.0.2"), 0});
  int visits = 0;
  const std::function<void()> refuse = [&] {
    closing.async_accept([&](const boost::system::error_code& error, const boost::asio::ip::tcp::socket&) {
      if (error) return;
      ++visits;
      refuse();
    });
  };
  refuse();

  dial({"127.0.0.2", closing.local_endpoint().port()});

  loopback_.run_until([&] { return visits == 3; }, "the third attempt");
  EXPECT_TRUE(made_.empty());
  dialer_.reset();
}

TEST_F(LinksThatAreMade, AreGivenUpWhereNobodyListens) {
  dial({"127.0.0.2", 1}, milliseconds(1));

  loopback_.run_until([&] { return !given_up_.empty(); }, "the end");

  EXPECT_THAT(given_up_[0], HasSubstr("127.0.0.2:1 cannot be reached: "));
  EXPECT_TRUE(made_.empty());
}

TEST_F(LinksThatAreMade, AreForgottenWithTheirDialer) {
  LinkListener listener(loopback_.io);
  dial({"127.0.0.2", listener.port()});
  loopback_.io.run_for(milliseconds(1));

  dialer_.reset();
  loopback_.io.restart();
  loopback_.io.poll();

  EXPECT_TRUE(made_.empty());
  EXPECT_TRUE(given_up_.empty());
}

}  // namespace
}  // namespace holdfast::recovery
