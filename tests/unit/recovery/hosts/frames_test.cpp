// Messages that come whole, in pieces, several at once, and bytes that are not messages.

#include "hosts/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string raw_frame(const std::string& text) {
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>((text.size() >> shift) & 0xFFU);
  return frame + text;
}

std::string complaint_about_bytes(const std::string& bytes, std::size_t most_bytes = kMostFrameBytes) {
  FrameReader reader(most_bytes);
  reader.take(bytes_of(bytes));
  try {
    while (reader.next()) continue;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::input_output);
    return error.what();
  }
  return "no complaint";
}

TEST(Frames, AreReadAsTheyWereWritten) {
  const nlohmann::json message{{"kind", "event"}, {"text", "\u00e4 \n"}, {"numbers", {1, 2.5, -3}}};
  FrameReader reader;

  reader.take(bytes_of(frame_of(message)));

  EXPECT_EQ(reader.next(), message);
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(Frames, AreReadByteByByteAndSeveralAtOnce) {
  std::string all;
  for (int i = 0; i < 20; ++i) all += frame_of({{"kind", "k"}, {"i", i}});
  FrameReader slow;
  FrameReader fast;

  std::vector<int> read;
  for (const char byte : all) {
    slow.take(bytes_of(std::string(1, byte)));
    while (const auto message = slow.next()) read.push_back(message->at("i"));
  }
  fast.take(bytes_of(all));

  ASSERT_EQ(read.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(read[i], i);
    EXPECT_EQ(fast.next()->at("i"), i);
  }
  EXPECT_EQ(fast.next(), std::nullopt);
}

TEST(Frames, AreRefusedByTheirLengthBeforeTheyHaveCome) {
  EXPECT_THAT(complaint_about_bytes({'\x01', '\x00', '\x00', '\x01'}), HasSubstr("at most 16777216 are possible"));
  EXPECT_THAT(complaint_about_bytes("GET / HTTP/1.1"), HasSubstr("at most"));
  EXPECT_THAT(complaint_about_bytes(raw_frame("{\"kind\":\"k\"}"), 11), HasSubstr("it has 12 bytes, but at most 11"));
}

TEST(Frames, MayGrowOnceThePeerIsKnown) {
  FrameReader reader(11);
  reader.set_most_bytes(12);

  reader.take(bytes_of(raw_frame("{\"kind\":\"k\"}")));

  EXPECT_TRUE(reader.next().has_value());
}

TEST(Frames, AreRefusedUnlessTheyAreObjectsWithAKind) {
  EXPECT_THAT(complaint_about_bytes(raw_frame("")), HasSubstr("not JSON"));
  EXPECT_THAT(complaint_about_bytes(raw_frame("{\"kind\":\"k\"} ")), HasSubstr("no complaint"));
  EXPECT_THAT(complaint_about_bytes(raw_frame("{\"kind\":\"k\"}x")), HasSubstr("not JSON"));
  EXPECT_THAT(complaint_about_bytes(raw_frame("{\"kind\":\"\xFF\"}")), HasSubstr("not JSON"));
  for (const char* text : {"[]", "7", "null", "{}", "{\"kind\":7}", "{\"Kind\":\"k\"}"}) {
    EXPECT_THAT(complaint_about_bytes(raw_frame(text)), HasSubstr("no kind")) << text;
  }
}

TEST(Frames, AreRefusedWhenTheyWouldTakeMuchMoreMemoryThanBytes) {
  EXPECT_THAT(complaint_about_bytes(raw_frame("{\"kind\":\"k\",\"a\":" + std::string(100'000, '['))),
              HasSubstr("nested more than 16"));
  std::string many = "{\"kind\":\"k\",\"a\":[0";
  for (int i = 0; i < 300'000; ++i) many += ",0";
  EXPECT_THAT(complaint_about_bytes(raw_frame(many + "]}")), HasSubstr("more than 262144 values"));
}

TEST(Frames, CannotBeWrittenTooLongOrWithoutUtf8) {
  EXPECT_THROW(frame_of({{"kind", std::string(kMostFrameBytes, 'a')}}), Error);
  EXPECT_THROW(frame_of({{"kind", "\xFF"}}), Error);
}

}  // namespace
}  // namespace holdfast::recovery
