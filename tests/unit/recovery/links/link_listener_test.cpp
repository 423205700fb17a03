// Which connections are taken for replicas, and which are not.

#include "links/link_listener.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>

#include "unit/recovery/support/link_ends.h"
#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

using boost::asio::ip::tcp;

class LinksThatArrive : public ::testing::Test {
 protected:
  // A connection that has said `bytes`.
  FileDescriptor visit(std::span<const std::uint8_t> bytes) {
    tcp::socket socket(loopback_.io);
    socket.connect({boost::asio::ip::make_address("127.0.0.2"), static_cast<unsigned short>(listener_.port())});
    EXPECT_EQ(::send(socket.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return FileDescriptor(socket.release());
  }
  FileDescriptor visit(const LinkToken& token) { return visit(token.bytes()); }

  void expect(const LinkToken& token) {
    listener_.expect(token, [this](FileDescriptor socket) { taken_.push_back(std::move(socket)); });
  }

  // The answer; 0 when the connection was closed without one.
  std::uint8_t answer_to(const FileDescriptor& visitor) {
    std::uint8_t answer = 0;
    bool is_over = false;
    loopback_.run_until(
        [&] {
          const ssize_t bytes = ::recv(visitor.value(), &answer, 1, MSG_DONTWAIT);
          is_over = bytes >= 0 || errno != EAGAIN;
          if (!is_over) loopback_.io.run_for(std::chrono::milliseconds(1));
          return is_over;
        },
        "an answer");
    return answer;
  }

  Loopback loopback_;
  LinkListener listener_{loopback_.io};
  std::vector<FileDescriptor> taken_;
  const LinkToken token_{.key = new_link_key(), .exchange = 3, .lane = 1};
};

TEST_F(LinksThatArrive, AreTakenWhenTheyAreExpected) {
  expect(token_);

  const FileDescriptor visitor = visit(token_);
  loopback_.run_until([&] { return !taken_.empty(); }, "the connection");

  EXPECT_EQ(answer_to(visitor), kLinkTaken);
  EXPECT_TRUE(are_connected(visitor, taken_[0]));
  EXPECT_TRUE(are_connected(taken_[0], visitor));
}

TEST_F(LinksThatArrive, WaitWhenTheyCameTooEarly) {
  const FileDescriptor visitor = visit(token_);
  const FileDescriptor other = visit(LinkToken{.key = token_.key, .exchange = 3, .lane = 0});
  loopback_.run_until([&] { return listener_.waiting() == 2; }, "their tokens");

  expect(token_);
  loopback_.run_until([&] { return !taken_.empty(); }, "the connection");

  EXPECT_EQ(answer_to(visitor), kLinkTaken);
  EXPECT_TRUE(are_connected(visitor, taken_[0]));
}

// An agent has dialed again, and its first connection ends at the moment when the token is expected.
TEST_F(LinksThatArrive, AreTakenWhereAnEarlierOneOfTheTokenHasEnded) {
  FileDescriptor first = visit(token_);
  const FileDescriptor second = visit(token_);
  loopback_.run_until([&] { return listener_.waiting() == 2; }, "their tokens");

  // A reset, so that nothing can be sent to it any more.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(first.value(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  first = FileDescriptor();
  expect(token_);
  loopback_.run_until([&] { return !taken_.empty(); }, "the connection");

  EXPECT_EQ(answer_to(second), kLinkTaken);
  EXPECT_TRUE(are_connected(second, taken_[0]));
}

TEST_F(LinksThatArrive, AreTakenOnce) {
  expect(token_);
  const FileDescriptor first = visit(token_);
  loopback_.run_until([&] { return !taken_.empty(); }, "the connection");

  const FileDescriptor second = visit(token_);
  // What comes after the token ends a connection that nobody expects.
  EXPECT_EQ(::send(second.value(), "x", 1, MSG_NOSIGNAL), 1);

  EXPECT_EQ(answer_to(second), 0);
  EXPECT_EQ(taken_.size(), 1U);
}

TEST_F(LinksThatArrive, AreNotTakenOnceTheyAreForgotten) {
  expect(token_);
  listener_.forget(token_);

  const FileDescriptor visitor = visit(token_);
  EXPECT_EQ(::send(visitor.value(), "x", 1, MSG_NOSIGNAL), 1);

  EXPECT_EQ(answer_to(visitor), 0);
  EXPECT_TRUE(taken_.empty());
}

TEST_F(LinksThatArrive, CloseTheOldestStrangersWhenTheyAreMany) {
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 257; ++i) strangers.push_back(visit(std::vector<std::uint8_t>{1, 2, 3}));

  EXPECT_EQ(answer_to(strangers.front()), 0);

  expect(token_);
  const FileDescriptor visitor = visit(token_);
  loopback_.run_until([&] { return !taken_.empty(); }, "the connection");
  EXPECT_EQ(answer_to(visitor), kLinkTaken);
}

}  // namespace
}  // namespace holdfast::recovery
