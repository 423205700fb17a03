#include "collective/hosts/frame_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collective/hosts/socket_link.h"
#include "support/host_threads.h"
#include "unit/collective/hosts/support/faulty_link.h"

namespace holdfast {
namespace {

constexpr FrameOrigin kHere{.generation = 1, .lane = 0, .host = 0};
constexpr FrameOrigin kThere{.generation = 1, .lane = 0, .host = 1};

// Two streams over a socket pair whose links move at most `most` bytes at a time.
struct Streams {
  explicit Streams(std::size_t most) : Streams(most, unix_pair()) {}

  FrameStream here;
  FrameStream there;

 private:
  Streams(std::size_t most, SocketPair ends)
      : here(short_link(std::move(ends.first), most), kHere, kThere),
        there(short_link(std::move(ends.second), most), kThere, kHere) {}

  static std::unique_ptr<Link> short_link(FileDescriptor socket, std::size_t most) {
    return std::make_unique<ShortLink>(std::make_unique<SocketLink>(std::move(socket)), most);
  }
};

std::span<std::byte> bytes_of_text(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

void send_all(FrameStream& stream) {
  for (int turn = 0; stream.is_sending() && turn < 1000; ++turn) stream.send();
}

}  // namespace

// Every cut of header and body, with bodies that lie in several places on both sides.
TEST(FrameStream, PutsFramesTogetherThatWereCutAnywhere) {
  for (std::size_t most = 1; most <= 60; ++most) {
    Streams streams(most);
    std::string sent[] = {"a body", "", " in three parts"};
    std::string first(4, ' ');
    std::string second(17, ' ');
    std::vector<Frame> taken;
    streams.here.start({.kind = FrameKind::piece, .index = 9, .bytes = 21},
                       {bytes_of_text(sent[0]), bytes_of_text(sent[1]), bytes_of_text(sent[2])});

    for (int turn = 0; taken.empty() && turn < 1000; ++turn) {
      if (streams.here.is_sending()) streams.here.send();
      streams.there.receive(
          [&](const Frame&) {
            return FrameBody{bytes_of_text(first), bytes_of_text(second)};
          },
          [&](const Frame& frame) { taken.push_back(frame); });
    }

    ASSERT_EQ(taken.size(), 1U) << most;
    EXPECT_FALSE(streams.here.is_sending());
    EXPECT_EQ(first + second, "a body in three parts");
    EXPECT_EQ(taken[0].index, 9U);
  }
}

TEST(FrameStream, SendsFramesWithoutABody) {
  Streams streams(7);
  int taken = 0;
  streams.here.start({}, {});

  for (int turn = 0; taken == 0 && turn < 1000; ++turn) {
    if (streams.here.is_sending()) streams.here.send();
    streams.there.receive([&](const Frame&) { return FrameBody{}; }, [&](const Frame&) { ++taken; });
  }

  EXPECT_EQ(taken, 1);
}

TEST(FrameStream, HoldsAFrameForWhichThereIsNoRoom) {
  Streams streams(1000);
  std::string sent = "later";
  std::string received(5, ' ');
  int taken = 0;
  streams.here.start({.bytes = 5}, {bytes_of_text(sent)});
  send_all(streams.here);

  for (int turn = 0; turn < 4; ++turn) {
    streams.there.receive([&](const Frame&) { return std::nullopt; }, [&](const Frame&) { ++taken; });
  }

  EXPECT_TRUE(streams.there.is_held());
  EXPECT_EQ(taken, 0);
  for (int turn = 0; turn < 4 && taken == 0; ++turn) {
    streams.there.receive([&](const Frame&) { return FrameBody{bytes_of_text(received)}; },
                          [&](const Frame&) { ++taken; });
  }
  EXPECT_FALSE(streams.there.is_held());
  EXPECT_EQ(received, "later");
}

TEST(FrameStream, RefusesAFrameOfAnotherCall) {
  Streams streams(1000);
  streams.here.begin_call(2);
  streams.there.begin_call(3);
  streams.here.start({}, {});
  send_all(streams.here);

  EXPECT_THROW(streams.there.receive([](const Frame&) { return FrameBody{}; }, [](const Frame&) {}), FrameError);
}

}  // namespace holdfast
