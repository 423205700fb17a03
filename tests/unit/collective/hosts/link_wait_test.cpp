#include "collective/hosts/link_wait.h"

#include <gtest/gtest.h>

#include "collective/hosts/socket_link.h"
#include "support/host_threads.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class LinkWaits : public testing::Test {
 protected:
  LinkWaits() : LinkWaits(unix_pair()) {}

  LinkWait wait(bool to_receive, bool to_send, Deadline deadline) {
    const LinkInterest interest{.link = &link_, .to_receive = to_receive, .to_send = to_send};
    return wait_for_links(std::span(&interest, 1), event_.value(), deadline);
  }
  // Whether the wait returns because of the link.
  bool is_ready(bool to_receive, bool to_send) {
    return wait(to_receive, to_send, Deadline::after(0ms)) == LinkWait::look_again;
  }

  FileDescriptor event_{checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))};
  SocketLink link_;
  SocketLink peer_;

 private:
  explicit LinkWaits(SocketPair ends) : link_(std::move(ends.first)), peer_(std::move(ends.second)) {}
};

}  // namespace

TEST_F(LinkWaits, EndWhenALinkIsReady) {
  EXPECT_FALSE(is_ready(true, false));
  EXPECT_TRUE(is_ready(false, true));

  const std::byte byte{};
  const std::span<const std::byte> part(&byte, 1);
  peer_.send(std::span(&part, 1));

  EXPECT_TRUE(is_ready(true, false));
}

TEST_F(LinkWaits, EndWhenALinkEnds) {
  peer_.shut_down();

  EXPECT_TRUE(is_ready(true, false));
}

// A peer may have left after its last call.
TEST_F(LinkWaits, DoNotLookAtALinkOfWhichNothingIsWanted) {
  peer_.shut_down();

  EXPECT_FALSE(is_ready(false, false));
}

TEST_F(LinkWaits, EndWhenTheEventIsSet) {
  ::eventfd_write(event_.value(), 1);

  EXPECT_EQ(wait(true, false, Deadline::after(10min)), LinkWait::cancelled);
}

TEST_F(LinkWaits, EndAtTheDeadline) {
  EXPECT_EQ(wait(true, false, Deadline::after(1ms)), LinkWait::deadline_passed);
}

// The caller looks at a word that has no descriptor.
TEST_F(LinkWaits, EndNowAndThen) {
  EXPECT_EQ(wait(true, false, Deadline::after(10min)), LinkWait::look_again);
}

TEST(LinkWaitsForNothing, EndAtTheDeadline) {
  EXPECT_EQ(wait_for_links({}, -1, Deadline::after(1ms)), LinkWait::deadline_passed);
}

}  // namespace holdfast
