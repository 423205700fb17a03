#include "collective/hosts/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "holdfast/core/random.h"

namespace holdfast {
namespace {

constexpr FrameOrigin kOrigin{.generation = 0x0102'0304'0506'0708, .lane = 3, .host = 2, .call = 41};

std::optional<FrameFault> fault_of(const FrameHeader& header, const FrameOrigin& expected = kOrigin) {
  try {
    from_header(header, expected);
    return std::nullopt;
  } catch (const FrameError& error) {
    return error.fault();
  }
}

}  // namespace

TEST(FrameHeaders, KeepWhatWasSent) {
  for (const bool is_finite : {true, false}) {
    const Frame sent{.kind = FrameKind::sums, .is_finite = is_finite, .index = 70'000, .bytes = 4'000'000'000};

    const Frame received = from_header(to_header(kOrigin, sent), kOrigin);

    EXPECT_EQ(received.kind, sent.kind);
    EXPECT_EQ(received.is_finite, sent.is_finite);
    EXPECT_EQ(received.index, sent.index);
    EXPECT_EQ(received.bytes, sent.bytes);
  }
}

TEST(FrameHeaders, SayWhatIsWrong) {
  const FrameHeader header = to_header(kOrigin, {});
  const auto other = [&](auto change) {
    FrameOrigin expected = kOrigin;
    change(expected);
    return fault_of(header, expected);
  };

  EXPECT_EQ(fault_of(header), std::nullopt);
  EXPECT_EQ(other([](FrameOrigin& origin) { ++origin.generation; }), FrameFault::other_generation);
  EXPECT_EQ(other([](FrameOrigin& origin) { ++origin.lane; }), FrameFault::other_lane);
  EXPECT_EQ(other([](FrameOrigin& origin) { ++origin.host; }), FrameFault::other_lane);
  EXPECT_EQ(other([](FrameOrigin& origin) { ++origin.call; }), FrameFault::other_call);
  EXPECT_EQ(to_string(FrameFault::other_generation), "other_generation");
}

// What the receiver compares with its own knowledge are kind, index and bytes; the flag is free.
TEST(FrameHeaders, NoticeEachByteOfTheOrigin) {
  const FrameHeader header = to_header(kOrigin, {.kind = FrameKind::values, .index = 5, .bytes = 6});
  for (std::size_t at = 0; at < 24; ++at) {
    FrameHeader damaged = header;
    damaged[at] ^= std::byte{0x80};

    EXPECT_TRUE(fault_of(damaged).has_value()) << "byte " << at;
  }
}

TEST(FrameHeaders, RefuseRandomBytes) {
  Random random(3, Purpose::user, 0, 0);
  for (int trial = 0; trial < 10'000; ++trial) {
    FrameHeader header{};
    for (std::byte& byte : header) byte = static_cast<std::byte>(random.below(256));

    ASSERT_EQ(fault_of(header), FrameFault::garbage);
  }
}

}  // namespace holdfast
