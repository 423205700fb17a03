#include "collective/hosts/one_frame_task.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {

TEST(OneFrameTask, HasOneFrameForEachHostThatItWasGiven) {
  const std::string text = "body";
  OneFrameTask task(3, FrameKind::piece, 5);
  task.send_to(2, {std::as_bytes(std::span(text))});

  EXPECT_TRUE(task.has_sent_all(1));
  EXPECT_FALSE(task.has_sent_all(2));
  const auto frame = task.next_for(2);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->frame.bytes, 4U);
  EXPECT_EQ(frame->frame.index, 5U);
  EXPECT_TRUE(task.has_sent_all(2));
  EXPECT_FALSE(task.next_for(2).has_value());
}

TEST(OneFrameTask, TakesTheFrameThatItExpectsAlone) {
  std::string text = "body";
  OneFrameTask task(2, FrameKind::piece, 5);
  task.receive_from(1, {std::as_writable_bytes(std::span(text))});
  const Frame right{.kind = FrameKind::piece, .index = 5, .bytes = 4};
  const auto is_refused = [&](Frame frame) {
    try {
      task.place_for(1, frame);
      return false;
    } catch (const FrameError& error) {
      return error.fault() == FrameFault::other_content;
    }
  };

  EXPECT_TRUE(is_refused({.kind = FrameKind::small, .index = 5, .bytes = 4}));
  EXPECT_TRUE(is_refused({.kind = FrameKind::piece, .index = 6, .bytes = 4}));
  EXPECT_TRUE(is_refused({.kind = FrameKind::piece, .index = 5, .bytes = 4'000'000'000}));
  EXPECT_FALSE(is_refused(right));
  EXPECT_FALSE(task.has_received_all(1));
  task.take(1, right);
  EXPECT_TRUE(task.has_received_all(1));
}

}  // namespace holdfast
