// The task of one of two hosts, with frames that the test makes. Each host has one shard.

#include "collective/hosts/sum_task.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace holdfast {
namespace {

constexpr std::size_t kPiece = 16;
constexpr std::size_t kTaskFloats = 12 * kPiece;  // six pieces for each host
constexpr std::uint32_t kBytes = kPiece * sizeof(float);

class SumTasks : public testing::Test {
 protected:
  // A frame from the other host, whose floats are all `value`.
  bool receive(Frame frame, float value) {
    frame.bytes = kBytes;
    const auto place = task_.place_for(1, frame);
    if (!place) return false;
    const std::vector<float> values(kPiece, value);
    std::memcpy(place->at(0).data(), values.data(), kBytes);
    task_.take(1, frame);
    return true;
  }
  bool receive_values(std::uint32_t index, float value = 2) {
    return receive({.kind = FrameKind::values, .index = index}, value);
  }
  bool receive_sums(std::uint32_t index, bool is_finite = true) {
    return receive({.kind = FrameKind::sums, .is_finite = is_finite, .index = index}, 3);
  }

  const HostLayout layout_{std::vector<int>{1, 1}};
  const HostSums programs_{ShardAssignment::even(2, 2), layout_, 0};
  SumTask::Room room_;
  std::vector<float> own_ = std::vector<float>(kTaskFloats, 1.0F);
  std::vector<float> sums_ = std::vector<float>(kTaskFloats);
  SumTask task_{layout_,
                programs_,
                room_,
                {.own_host = 0,
                 .range = {0, kTaskFloats},
                 .piece_floats = kPiece,
                 .leaves = {own_.data()},
                 .sums = sums_.data()}};
};

}  // namespace

TEST_F(SumTasks, SendASumAsSoonAsItsPieceHasArrived) {
  EXPECT_EQ(task_.next_for(1)->frame.kind, FrameKind::values);
  EXPECT_TRUE(receive_values(0));

  const auto sums = task_.next_for(1);

  ASSERT_TRUE(sums.has_value());
  EXPECT_EQ(sums->frame.kind, FrameKind::sums);
  EXPECT_EQ(sums_[0], 3.0F);
  EXPECT_EQ(sums_[kPiece], 0.0F);
}

// What lies in a slot is sent from there.
TEST_F(SumTasks, CopyNothingThatIsSent) {
  const auto values = task_.next_for(1);

  ASSERT_EQ(values->body.size(), 1U);
  EXPECT_EQ(static_cast<const void*>(values->body[0].data()), own_.data() + kTaskFloats / 2);
}

TEST_F(SumTasks, AreCompleteWhenAllIsSentAndReceived) {
  for (std::uint32_t piece = 0; piece < 6; ++piece) {
    EXPECT_FALSE(task_.has_received_all(1));
    EXPECT_TRUE(receive_values(piece));
    EXPECT_TRUE(receive_sums(piece));
  }
  EXPECT_TRUE(task_.has_received_all(1));

  int frames = 0;
  while (task_.next_for(1)) ++frames;

  EXPECT_EQ(frames, 12);
  EXPECT_TRUE(task_.has_sent_all(1));
  EXPECT_TRUE(task_.is_finite());
  EXPECT_EQ(sums_, std::vector<float>(kTaskFloats, 3.0F));
}

TEST_F(SumTasks, TakeEachFrameInItsPlaceAlone) {
  EXPECT_THROW(receive_values(1), FrameError);
  EXPECT_THROW(receive_sums(1), FrameError);
  EXPECT_THROW(receive({.kind = FrameKind::small}, 0), FrameError);
  EXPECT_THROW(task_.place_for(1, {.kind = FrameKind::values, .bytes = kBytes + 4}), FrameError);
  for (std::uint32_t piece = 0; piece < 6; ++piece) receive_values(piece);
  EXPECT_THROW(receive_values(6), FrameError);
}

TEST_F(SumTasks, TellWhetherAPeerHasFoundWhatIsNotFinite) {
  for (std::uint32_t piece = 0; piece < 6; ++piece) {
    receive_values(piece);
    receive_sums(piece, piece < 5);
  }

  EXPECT_FALSE(task_.is_finite());
}

TEST_F(SumTasks, TellAPeerWhatIsNotFinite) {
  receive_values(0, std::numeric_limits<float>::infinity());

  EXPECT_FALSE(task_.next_for(1)->frame.is_finite);
  EXPECT_FALSE(task_.is_finite());
}

// With three hosts, host 1 may be far ahead of host 2. It has to wait, and must not be forgotten.
TEST(SumTask, HasRoomForAFewPiecesOfAHostThatIsAhead) {
  const HostLayout layout({1, 1, 1});
  const HostSums programs(ShardAssignment::even(3, 3), layout, 0);
  SumTask::Room room;
  const std::vector<float> own(3 * 8 * kPiece, 1.0F);
  std::vector<float> sums(own.size());
  SumTask task(
      layout, programs, room,
      {.own_host = 0, .range = {0, own.size()}, .piece_floats = kPiece, .leaves = {own.data()}, .sums = sums.data()});
  const auto receive = [&](int host, std::uint32_t index) {
    const Frame frame{.kind = FrameKind::values, .index = index, .bytes = kBytes};
    if (!task.place_for(host, frame)) return false;
    task.take(host, frame);
    return true;
  };
  std::uint32_t ahead = 0;

  while (ahead < 8 && receive(1, ahead)) ++ahead;

  EXPECT_GT(ahead, 1U);
  EXPECT_LT(ahead, 8U);
  EXPECT_TRUE(receive(2, 0));
  EXPECT_TRUE(receive(1, ahead));
}

}  // namespace holdfast
