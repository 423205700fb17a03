// zstd itself decodes every frame that the encoder makes here: any reader of the files must be able to.

#include "codec/literals_frame.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "codec/shuffle.h"
#include "holdfast/base/digest.h"
#include "support/data/random_data.h"

namespace holdfast::format {
namespace {

std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

// Decodes with zstd itself, as any reader would.
std::vector<std::byte> decompress(std::span<const std::byte> frame) {
  std::vector<std::byte> content(ZSTD_getFrameContentSize(frame.data(), frame.size()));
  const std::size_t size = ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size());
  EXPECT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  return content;
}

void expect_comes_back(std::span<const std::byte> content, std::size_t plane_bytes) {
  LiteralsEncoder encoder;
  const auto frame = encoder.encode(content, plane_bytes);
  EXPECT_EQ(ZSTD_findFrameCompressedSize(frame.data(), frame.size()), frame.size());
  EXPECT_TRUE(decompress(frame) == copy(content)) << content.size() << " bytes in planes of " << plane_bytes;
}

// Bytes with `symbols` different values from `lowest` on, each `base` times as likely as the next.
std::vector<std::byte> skewed_bytes(std::size_t count, unsigned symbols, double base, unsigned lowest, unsigned seed) {
  std::vector<double> weights;
  for (unsigned i = 0; i < symbols; ++i) weights.push_back(std::pow(base, -static_cast<double>(i)));
  return weighted_bytes(count, weights, lowest, seed);
}

std::vector<std::byte> shuffled(std::span<const std::byte> bytes, std::size_t width) {
  std::vector<std::byte> out(bytes.size());
  shuffle(bytes, width, bytes.size() / width, out.data());
  return out;
}

double ratio(std::span<const std::byte> content, std::size_t planes) {
  return static_cast<double>(content.size()) /
         static_cast<double>(LiteralsEncoder().encode(content, content.size() / planes).size());
}

// The upper halves of the floats, which are bf16 numbers.
std::vector<std::byte> upper_halves(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  std::vector<std::byte> halves;
  for (std::size_t i = 0; i < bytes.size(); i += 4) halves.insert(halves.end(), {bytes[i + 2], bytes[i + 3]});
  return halves;
}

TEST(LiteralsFrame, ReturnsBytesOfAnyLength) {
  for (std::size_t bytes = 1; bytes < 700; ++bytes) expect_comes_back(skewed_bytes(bytes, 5, 2, 60, 1), bytes);
  for (const std::size_t bytes : {1023U, 1024U, 4099U, 131'071U, 131'072U, 131'073U, 300'000U, 1'048'576U}) {
    expect_comes_back(skewed_bytes(bytes, 9, 1.7, 100, 2), bytes);
    expect_comes_back(random_bytes(bytes, 3), bytes);
  }
}

// From two symbols to 256, from flat to steep, at the beginning and at the end of the alphabet: every way to describe a
// code, and words of every length.
TEST(LiteralsFrame, ReturnsBytesOfAnyDistribution) {
  unsigned seed = 0;
  for (const unsigned symbols : {2U, 3U, 4U, 7U, 16U, 50U, 127U, 128U, 129U, 130U, 200U, 255U, 256U}) {
    for (const double base : {1.0, 1.001, 1.01, 1.05, 1.3, 2.0, 4.0}) {
      for (const unsigned lowest : {0U, 256U - symbols}) {
        expect_comes_back(skewed_bytes(3000, symbols, base, lowest, ++seed), 3000);
        expect_comes_back(skewed_bytes(40'000, symbols, base, lowest, ++seed), 40'000);
      }
    }
  }
}

TEST(LiteralsFrame, ReturnsScatteredSymbols) {
  for (unsigned round = 0; round < 300; ++round) {
    const std::vector<std::byte> alphabet = random_bytes(2 + round % 60, round);
    std::vector<std::byte> bytes = skewed_bytes(2500, static_cast<unsigned>(alphabet.size()), 1.2, 0, round);
    for (std::byte& byte : bytes) byte = alphabet[std::to_integer<std::size_t>(byte)];

    expect_comes_back(bytes, bytes.size());
  }
}

TEST(LiteralsFrame, ReturnsPlanesThatDiffer) {
  std::vector<std::byte> content = random_bytes(50'000, 1);
  const std::vector<std::byte> skewed = skewed_bytes(50'000, 20, 1.5, 50, 2);
  content.insert(content.end(), skewed.begin(), skewed.end());
  content.resize(150'000);
  content.insert(content.end(), skewed.begin(), skewed.end());

  expect_comes_back(content, 50'000);
}

// The code of a large block is made from a sample: these ranges of 64 bytes.
constexpr std::size_t kLargeBlock = 131'072;
std::vector<std::size_t> looked_at() {
  std::vector<std::size_t> ranges;
  for (std::size_t i = 0; i < 256; ++i) ranges.push_back((kLargeBlock - 64) * i / 255);
  return ranges;
}

TEST(LiteralsFrame, ReturnsBytesThatTheSampleMisses) {
  for (const unsigned rare : {0U, 1U, 57U, 64U, 70U, 90U, 128U, 255U}) {
    std::vector<std::byte> content = skewed_bytes(kLargeBlock, 6, 2, 60, rare);
    content[looked_at()[100] + 64] = static_cast<std::byte>(rare);

    expect_comes_back(content, content.size());
    EXPECT_LT(LiteralsEncoder().encode(content, content.size()).size(), kLargeBlock / 2) << rare;
  }
}

TEST(LiteralsFrame, StoresBytesUncompressedAfterAMisleadingSample) {
  std::vector<std::byte> content = random_bytes(kLargeBlock, 1);
  unsigned next = 0;
  for (const std::size_t range : looked_at()) {
    // All bytes occur in the sample, and one of them nearly always.
    std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(range), 64, std::byte{7});
    content[range + 1] = static_cast<std::byte>(next++);
  }

  expect_comes_back(content, content.size());
  EXPECT_LE(LiteralsEncoder().encode(content, content.size()).size(), 9 + 4 + 3 + kLargeBlock);
}

TEST(LiteralsFrame, ShrinksWeightsAsFarAsTheirExponentsAllow) {
  const std::vector<float> values = normal_floats(262'144, 0.02, 1);

  EXPECT_GE(ratio(shuffled(std::as_bytes(std::span(values)), 4), 4), 1.19);
  EXPECT_GE(ratio(shuffled(std::as_bytes(std::span(values).first(4096)), 4), 4), 1.18);
  EXPECT_GE(ratio(shuffled(upper_halves(values), 2), 2), 1.48);
}

TEST(LiteralsFrame, NeverGrowsByMoreThanItsHeaders) {
  for (const std::size_t bytes : {1U, 255U, 256U, 5000U, 131'072U, 500'000U}) {
    const std::size_t blocks = (bytes + 131'071) / 131'072;
    LiteralsEncoder encoder;

    EXPECT_EQ(encoder.encode(random_bytes(bytes, 5), bytes).size(), 9 + 4 + 3 * blocks + bytes);
  }
}

TEST(LiteralsFrame, StoresARepeatedByteInFourBytesPerBlock) {
  const std::vector<std::byte> zeros(1 << 20);

  EXPECT_EQ(LiteralsEncoder().encode(zeros, zeros.size() / 4).size(), 9U + 4 + 8 * 4);
  expect_comes_back(zeros, zeros.size() / 4);
}

// Savepoints are reproducible: a change of these bytes changes the files of equal states.
TEST(LiteralsFrame, HasTheSameBytesOnEveryMachine) {
  std::vector<std::byte> content(200'000);
  std::uint32_t state = 1;
  for (std::byte& byte : content) {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<std::byte>(std::countl_zero(state | 1) * 3 + 70);
  }

  EXPECT_EQ(digest(LiteralsEncoder().encode(content, 50'000)).hex(), "6a505957cfa08092d88691c86acd0f59");
  EXPECT_EQ(digest(LiteralsEncoder().encode(content, 100'000)).hex(), "534d8f471cd715ee920eca3d78a6a096");
}

TEST(LiteralsFrame, IsRefusedWhenDamaged) {
  const std::vector<std::byte> content = skewed_bytes(2000, 12, 1.5, 100, 1);
  std::vector<std::byte> frame = copy(LiteralsEncoder().encode(content, 1000));
  std::vector<std::byte> out(content.size());
  for (std::size_t i = 5; i < frame.size(); ++i) {
    frame[i] ^= std::byte{0x04};
    const std::size_t size = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
    // Bits that only fill up a byte have no meaning.
    EXPECT_TRUE(ZSTD_isError(size) || out == content) << i;
    frame[i] ^= std::byte{0x04};
  }
}

}  // namespace
}  // namespace holdfast::format
