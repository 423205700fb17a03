#include "collective/hosts/socket_link.h"

#include <gtest/gtest.h>

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/deadline.h"
#include "support/host_threads.h"

namespace holdfast {
namespace {

// The text is a literal, which stays where it is.
std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Receives until so many bytes are there.
std::string receive(Link& link, std::size_t count) {
  std::string text(count, ' ');
  std::size_t received = 0;
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (received < count && !deadline.has_passed()) {
    received += link.receive(std::as_writable_bytes(std::span(text)).subspan(received));
  }
  return text.substr(0, received);
}

class SocketLinks : public testing::TestWithParam<bool> {
 protected:
  static SocketPair connected() { return GetParam() ? tcp_pair() : unix_pair(); }
};

// Tries until the link has ended, and returns whether it did.
bool ends(const std::function<void()>& use) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  try {
    while (!deadline.has_passed()) use();
  } catch (const LinkClosed&) {
    return true;
  }
  return false;
}

bool receives_an_end(Link& link) {
  return ends([&] {
    std::byte byte{};
    link.receive(std::span(&byte, 1));
  });
}

int tcp_option(const Link& link, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  checked(::getsockopt(link.descriptor(), IPPROTO_TCP, name, &value, &size));
  return value;
}

}  // namespace

TEST_P(SocketLinks, MoveSeveralPartsInOrder) {
  auto [a, b] = connected();
  SocketLink from(std::move(a));
  SocketLink to(std::move(b));
  const std::vector<std::span<const std::byte>> parts = {bytes("one "), {}, bytes("two "), bytes("three")};

  EXPECT_EQ(from.send(parts), 13U);

  EXPECT_EQ(receive(to, 13), "one two three");
}

TEST_P(SocketLinks, MoveNothingWhereNothingIsThere) {
  auto [a, b] = connected();
  SocketLink link(std::move(a));
  std::byte byte{};

  EXPECT_EQ(link.receive(std::span(&byte, 1)), 0U);
}

TEST_P(SocketLinks, TakeNoMoreThanTheirBufferHolds) {
  auto [a, b] = connected();
  SocketLink link(std::move(a));
  const std::vector<std::byte> much(std::size_t{1} << 20);
  const std::span<const std::byte> part(much);
  std::size_t sent = 0;
  std::size_t last = 1;

  while (last > 0 && sent < (std::size_t{1} << 30)) sent += last = link.send(std::span(&part, 1));

  EXPECT_EQ(last, 0U);
}

TEST_P(SocketLinks, EndForThePeerWhenTheyAreDestroyedAlsoIfADuplicateIsKept) {
  auto [a, b] = connected();
  const FileDescriptor kept = duplicate(a);
  SocketLink peer(std::move(b));

  { const SocketLink link(std::move(a)); }

  EXPECT_TRUE(receives_an_end(peer));
}

TEST_P(SocketLinks, DeliverWhatWasSentBeforeTheirEnd) {
  auto [a, b] = connected();
  SocketLink peer(std::move(b));
  {
    SocketLink link(std::move(a));
    const std::span<const std::byte> part = bytes("last");
    EXPECT_EQ(link.send(std::span(&part, 1)), 4U);
  }

  EXPECT_EQ(receive(peer, 4), "last");
  EXPECT_TRUE(receives_an_end(peer));
}

TEST_P(SocketLinks, EndOnBothSidesWhenADuplicateIsShutDown) {
  auto [a, b] = connected();
  const FileDescriptor kept = duplicate(a);
  SocketLink link(std::move(a));
  SocketLink peer(std::move(b));

  ::shutdown(kept.value(), SHUT_RDWR);

  EXPECT_TRUE(receives_an_end(link));
  EXPECT_TRUE(receives_an_end(peer));
  const std::span<const std::byte> part = bytes("x");
  EXPECT_TRUE(ends([&] { link.send(std::span(&part, 1)); }));
}

INSTANTIATE_TEST_SUITE_P(, SocketLinks, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "OverTcp" : "OverUnixSockets"; });

TEST(SocketLink, SendsAtOnceAndLimitsHowLongDataIsUnacknowledged) {
  auto [a, b] = tcp_pair();
  const SocketLink link(std::move(a), {.unacknowledged_limit = std::chrono::milliseconds(1234)});

  EXPECT_EQ(tcp_option(link, TCP_NODELAY), 1);
  EXPECT_EQ(tcp_option(link, TCP_USER_TIMEOUT), 1234);
}

// A reset throws data away that the peer has not read, as when a process is killed in the middle of a message.
TEST(SocketLink, EndsAfterAReset) {
  auto [a, b] = tcp_pair();
  SocketLink link(std::move(a));
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  checked(::setsockopt(b.value(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));

  b.reset();

  EXPECT_TRUE(receives_an_end(link));
}

TEST(SocketLink, RefusesWhatIsNotAConnectedStream) {
  int ends[2];
  checked(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
  const FileDescriptor other_end(ends[1]);

  EXPECT_THROW(SocketLink(FileDescriptor(ends[0])), Error);
  EXPECT_THROW(SocketLink(FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))), Error);
  EXPECT_THROW(SocketLink(FileDescriptor(::eventfd(0, EFD_CLOEXEC))), Error);
}

}  // namespace holdfast
