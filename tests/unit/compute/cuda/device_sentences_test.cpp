#include "compute/cuda/runtime/device_sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

TEST(DeviceSentences, CountBytesInTheLargestUnitThatFits) {
  EXPECT_EQ(in_bytes(312), "312 bytes");
  EXPECT_EQ(in_bytes(1024), "1.0 KiB");
  EXPECT_EQ(in_bytes(std::size_t{3} << 19), "1.5 MiB");
  EXPECT_EQ(in_bytes(std::size_t{139} << 30), "139.0 GiB");
  EXPECT_EQ(in_bytes(std::size_t{2} << 40), "2048.0 GiB");
}

TEST(DeviceSentences, SayHowMuchMemoryIsMissingAndWhatWouldHelp) {
  const std::string sentence = describe({.device = "cuda:0 (NVIDIA H200)",
                                         .asked_bytes = std::size_t{3} << 30,
                                         .free_bytes = std::size_t{1} << 30,
                                         .total_bytes = std::size_t{140} << 30});

  EXPECT_THAT(sentence, testing::StartsWith("allocating 3.0 GiB on cuda:0 (NVIDIA H200) failed"));
  EXPECT_THAT(sentence, testing::HasSubstr("1.0 GiB of its 140.0 GiB are free"));
  EXPECT_THAT(sentence, testing::HasSubstr("2.0 GiB are missing; a smaller batch"));
}

TEST(DeviceSentences, SayThatMemoryIsInPiecesWhereNoneIsMissing) {
  const std::string sentence = describe({.device = "cuda:0", .asked_bytes = 10, .free_bytes = 20, .total_bytes = 30});

  EXPECT_THAT(sentence, testing::HasSubstr("not in one piece"));
  EXPECT_THAT(sentence, testing::Not(testing::HasSubstr("missing")));
}

}  // namespace
}  // namespace holdfast::compute
