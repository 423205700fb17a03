// A lane and peers that do not keep to the protocol. The test holds the other ends of the sockets.

#include "collective/hosts/lane.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "collective/communicator.h"
#include "collective/hosts/one_frame_task.h"
#include "collective/hosts/socket_link.h"
#include "support/host_threads.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kGeneration = 12;
constexpr std::uint32_t kCall = 4;

// Rank 0 of three hosts with one rank each.
class Lanes : public testing::Test {
 protected:
  Lanes() {
    std::vector<std::unique_ptr<Link>> links(1);
    for (FileDescriptor& peer : peers_) {
      SocketPair ends = unix_pair();
      links.push_back(std::make_unique<SocketLink>(std::move(ends.first)));
      peer = std::move(ends.second);
    }
    lane_.emplace(HostLayout({1, 1, 1}), 0, kGeneration, std::move(links),
                  Lane::Cancellation{.event = event_.value(), .is_cancelled = [this] { return is_cancelled_.load(); }});
  }

  // What a host sends as its frame of a barrier.
  void send(int host, FrameOrigin origin, Frame frame = {}) { send_bytes(host, to_header(origin, frame)); }
  void send_bytes(int host, std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(peers_[host - 1].value(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static FrameOrigin origin_of(int host) { return {.generation = kGeneration, .lane = 0, .host = host, .call = kCall}; }

  // A barrier with the other hosts.
  void meet(Deadline deadline = Deadline::after(60s)) {
    OneFrameTask task(3, FrameKind::small);
    for (const int host : {1, 2}) {
      task.send_to(host, {});
      task.receive_from(host, {});
    }
    lane_->run(task, kCall, deadline);
  }
  std::string failure_of_meeting(ErrorCode code, Deadline deadline = Deadline::after(60s)) {
    try {
      meet(deadline);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "nothing was thrown";
  }
  // Host 1 keeps to the protocol, host 2 sends this instead.
  FrameFault fault_of(FrameOrigin origin, Frame frame = {}) {
    send(1, origin_of(1));
    send(2, origin, frame);
    try {
      meet();
    } catch (const FrameError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 2 on host 2"), std::string::npos) << error.what();
      return error.fault();
    }
    ADD_FAILURE() << "the frame was taken";
    return FrameFault::garbage;
  }

  std::atomic<bool> is_cancelled_ = false;
  FileDescriptor event_{checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))};
  FileDescriptor peers_[2];
  std::optional<Lane> lane_;
};

}  // namespace

TEST_F(Lanes, MeetPeersThatKeepToTheProtocol) {
  send(2, origin_of(2));
  send(1, origin_of(1));

  EXPECT_NO_THROW(meet());
}

TEST_F(Lanes, RefuseAnOlderGeneration) {
  FrameOrigin older = origin_of(2);
  --older.generation;

  EXPECT_EQ(fault_of(older), FrameFault::other_generation);
}

TEST_F(Lanes, RefuseAnotherLane) {
  FrameOrigin other = origin_of(2);
  other.lane = 1;

  EXPECT_EQ(fault_of(other), FrameFault::other_lane);
}

TEST_F(Lanes, RefuseAnotherHost) {
  EXPECT_EQ(fault_of(origin_of(1)), FrameFault::other_lane);
}

TEST_F(Lanes, RefuseAnotherCall) {
  FrameOrigin other = origin_of(2);
  ++other.call;

  EXPECT_EQ(fault_of(other), FrameFault::other_call);
}

TEST_F(Lanes, RefuseAFrameThatIsTooLong) {
  EXPECT_EQ(fault_of(origin_of(2), {.bytes = 1}), FrameFault::other_content);
}

TEST_F(Lanes, RefuseGarbage) {
  send_bytes(2, std::vector<std::byte>(1000, std::byte{'G'}));

  const std::string failure = failure_of_meeting(ErrorCode::input_output);

  EXPECT_NE(failure.find("not a message of Holdfast"), std::string::npos) << failure;
}

TEST_F(Lanes, EndTheGenerationWhenAPeerLeaves) {
  send(1, origin_of(1));
  peers_[1].reset();

  const std::string failure = failure_of_meeting(ErrorCode::cancelled);

  EXPECT_NE(failure.find("rank 2 on host 2"), std::string::npos) << failure;
}

// A host that has finished the last call of a generation does not wait for the others.
TEST_F(Lanes, FinishACallAfterWhichAPeerHasLeft) {
  std::thread peer([this] {
    std::array<std::byte, kFrameHeaderBytes> header{};
    // Host 2 sends its frame when host 1 has got what it needs and is gone.
    send(1, origin_of(1));
    EXPECT_EQ(::recv(peers_[0].value(), header.data(), header.size(), MSG_WAITALL),
              static_cast<ssize_t>(header.size()));
    peers_[0].reset();
    send(2, origin_of(2));
  });

  EXPECT_NO_THROW(meet());
  peer.join();
}

TEST_F(Lanes, NameTheRankThatIsLate) {
  send(1, origin_of(1));

  const std::string failure = failure_of_meeting(ErrorCode::deadline_exceeded, Deadline::after(10ms));

  EXPECT_NE(failure.find("rank 2 on host 2"), std::string::npos) << failure;
}

// One byte at a time until the deadline, and more of them than a header has.
TEST_F(Lanes, EndAtTheDeadlineWhileBytesArrive) {
  const Deadline deadline = Deadline::after(20ms);
  std::thread peer([&] {
    const FrameHeader header = to_header(origin_of(2), {.bytes = 0});
    for (std::size_t at = 0; at + 1 < header.size(); ++at) {
      send_bytes(2, std::span(header).subspan(at, 1));
      while (!deadline.has_passed() && at > 20) std::this_thread::yield();
    }
  });

  failure_of_meeting(ErrorCode::deadline_exceeded, deadline);
  peer.join();
}

TEST_F(Lanes, EndWhenTheWordIsCancelled) {
  is_cancelled_ = true;

  failure_of_meeting(ErrorCode::cancelled, Deadline::after(10min));
}

TEST_F(Lanes, EndWhenTheEventIsSet) {
  ::eventfd_write(event_.value(), 1);

  failure_of_meeting(ErrorCode::cancelled, Deadline::after(10min));
}

TEST_F(Lanes, EndForAllWhenTheyAreShutDown) {
  lane_->shut_down();

  failure_of_meeting(ErrorCode::cancelled, Deadline::after(10min));
  std::byte byte{};
  EXPECT_EQ(::recv(peers_[0].value(), &byte, 1, 0), 0);
  EXPECT_EQ(::recv(peers_[1].value(), &byte, 1, 0), 0);
}

TEST(Lane, NeedsALinkToEachOtherHost) {
  std::vector<std::unique_ptr<Link>> links(2);
  links[1] = std::make_unique<SocketLink>(unix_pair().first);

  EXPECT_THROW(Lane(HostLayout({1, 1, 1}), 0, kGeneration, std::move(links), {.is_cancelled = [] { return false; }}),
               Error);
}

}  // namespace holdfast
