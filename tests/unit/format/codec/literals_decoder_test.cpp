// The decoder next to zstd: it must never accept what zstd refuses, and never decode other bytes.

#include "codec/literals_decoder.h"

// For ZSTD_d_forceIgnoreChecksum.
#define ZSTD_STATIC_LINKING_ONLY
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "codec/literals_frame.h"
#include "codec/shuffle.h"
#include "support/data/random_data.h"

namespace holdfast::format {
namespace {

enum class Plane { noise, skewed, steep, repeated };

std::vector<std::byte> plane_of(Plane kind, std::size_t count, std::mt19937& random) {
  if (kind == Plane::noise) return random_bytes(count, random);
  if (kind == Plane::repeated) return std::vector<std::byte>(count, std::byte{0x3F});
  return geometric_bytes(count, kind == Plane::skewed ? 0.2 : 0.7, 90, 7, random);
}

// A chunk with planes of these kinds, one after the other.
std::vector<std::byte> planes_of(const std::vector<Plane>& kinds, std::size_t elements) {
  std::mt19937 random(11);
  std::vector<std::byte> planes;
  for (const Plane kind : kinds) {
    const std::vector<std::byte> plane = plane_of(kind, elements, random);
    planes.insert(planes.end(), plane.begin(), plane.end());
  }
  return planes;
}

std::vector<std::byte> frame_of(std::span<const std::byte> planes, std::size_t element_bytes) {
  LiteralsEncoder encoder;
  const auto frame = encoder.encode(planes, planes.size() / element_bytes);
  return {frame.begin(), frame.end()};
}

std::vector<std::byte> elements_of(const std::vector<std::byte>& planes, std::size_t element_bytes) {
  std::vector<std::byte> elements(planes.size());
  unshuffle(planes.data(), element_bytes, planes.size() / element_bytes, elements);
  return elements;
}

const std::vector<std::vector<Plane>>& mixtures() {
  static const std::vector<std::vector<Plane>> all = {{Plane::skewed},
                                                      {Plane::noise},
                                                      {Plane::repeated},
                                                      {Plane::noise, Plane::skewed},
                                                      {Plane::noise, Plane::noise, Plane::noise, Plane::skewed},
                                                      {Plane::repeated, Plane::steep, Plane::noise, Plane::skewed},
                                                      {Plane::steep, Plane::steep, Plane::steep, Plane::steep},
                                                      {Plane::noise, Plane::noise, Plane::repeated, Plane::noise,
                                                       Plane::skewed, Plane::noise, Plane::skewed, Plane::steep}};
  return all;
}

TEST(LiteralsDecoder, DecodesOurFrames) {
  LiteralsDecoder decoder;
  for (const std::vector<Plane>& kinds : mixtures()) {
    for (const std::size_t elements : {1U, 17U, 300U, 5000U, 131'072U, 131'073U, 300'000U}) {
      const std::vector<std::byte> planes = planes_of(kinds, elements);
      std::vector<std::byte> out(planes.size());

      ASSERT_TRUE(decoder.decode(frame_of(planes, kinds.size()), planes.size(), kinds.size(), out)) << elements;
      EXPECT_TRUE(out == elements_of(planes, kinds.size())) << kinds.size() << " x " << elements;
    }
  }
}

TEST(LiteralsDecoder, FillsOnlyTheBytesThatItIsAskedFor) {
  LiteralsDecoder decoder;
  for (const std::vector<Plane>& kinds : mixtures()) {
    const std::vector<std::byte> planes = planes_of(kinds, 200'000);
    const std::vector<std::byte> expected = elements_of(planes, kinds.size());
    for (const std::size_t elements : {0U, 1U, 131'071U, 131'072U, 131'073U, 199'999U}) {
      const std::size_t bytes = elements * kinds.size();
      std::vector<std::byte> out(bytes + 32, std::byte{0xEE});

      ASSERT_TRUE(decoder.decode(frame_of(planes, kinds.size()), planes.size(), kinds.size(),
                                 std::span(out).subspan(16, bytes)));
      EXPECT_TRUE(std::equal(out.begin() + 16, out.end() - 16, expected.begin())) << elements;
      EXPECT_EQ(std::count(out.begin(), out.begin() + 16, std::byte{0xEE}), 16);
      EXPECT_EQ(std::count(out.end() - 16, out.end(), std::byte{0xEE}), 16);
    }
  }
}

TEST(LiteralsDecoder, LeavesOtherFramesToZstd) {
  const std::vector<std::byte> planes = planes_of({Plane::noise, Plane::skewed}, 100'000);
  std::vector<std::byte> frame(ZSTD_compressBound(planes.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), planes.data(), planes.size(), 1));
  const std::vector<std::byte> ours = frame_of(planes, 2);
  std::vector<std::byte> out(planes.size());
  LiteralsDecoder decoder;

  EXPECT_FALSE(decoder.decode(frame, planes.size(), 2, out));
  EXPECT_FALSE(decoder.decode({}, planes.size(), 2, out));
  EXPECT_FALSE(decoder.decode(ours, planes.size(), 4, out)) << "cut at other planes";
  EXPECT_FALSE(decoder.decode(ours, planes.size() + 2, 2, out)) << "of another size";
  EXPECT_FALSE(decoder.decode(std::span(ours).first(ours.size() - 1), planes.size(), 2, out));
}

// Decodes without the checksum, as frames are read whose digest was checked.
class Zstd {
 public:
  Zstd() : context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_forceIgnoreChecksum, ZSTD_d_ignoreChecksum);
  }

  bool decode(std::span<const std::byte> frame, std::span<std::byte> out) const {
    return ZSTD_findFrameCompressedSize(frame.data(), frame.size()) == frame.size() &&
           ZSTD_decompressDCtx(context_.get(), out.data(), out.size(), frame.data(), frame.size()) == out.size();
  }

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
};

struct Tally {
  unsigned by_both = 0;
  unsigned by_none = 0;
  unsigned by_zstd_alone = 0;
};

// Changes one bit or one byte or cuts the frame, mostly where headers and descriptions are.
void damage(std::vector<std::byte>& frame, std::mt19937& random) {
  const std::size_t range = random() % 2 == 0 ? std::min<std::size_t>(frame.size(), 150) : frame.size();
  std::byte& byte = frame[random() % range];
  switch (random() % 8) {
    case 0:
      byte = static_cast<std::byte>(random());
      return;
    case 1:
      frame.resize(random() % frame.size());
      return;
    default:
      byte ^= static_cast<std::byte>(1U << random() % 8);
  }
}

class LiteralsDecoderOfDamage : public ::testing::TestWithParam<std::size_t> {
 protected:
  // Fails unless zstd accepts what the decoder accepts, with the same bytes.
  void compare(std::span<const std::byte> frame, std::size_t bytes) {
    std::vector<std::byte> ours(bytes);
    std::vector<std::byte> planes(bytes);
    const bool by_us = decoder_.decode(frame, bytes, GetParam(), ours);
    const bool by_zstd = zstd_.decode(frame, planes);
    ASSERT_TRUE(!by_us || by_zstd);
    if (by_us) {
      ASSERT_TRUE(ours == elements_of(planes, GetParam()));
    }
    ++(by_us ? tally_.by_both : by_zstd ? tally_.by_zstd_alone : tally_.by_none);
  }

  LiteralsDecoder decoder_;
  Zstd zstd_;
  Tally tally_;
};

TEST_P(LiteralsDecoderOfDamage, AcceptsNothingThatZstdRefuses) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (const std::vector<Plane>& kinds : mixtures()) {
    if (kinds.size() != GetParam()) continue;
    for (const std::size_t elements : {300U, 700U, 4000U}) {
      const std::vector<std::byte> frame = frame_of(planes_of(kinds, elements), kinds.size());
      for (int round = 0; round < 3000; ++round) {
        std::vector<std::byte> damaged = frame;
        for (int i = 0; i <= round % 3; ++i) {
          if (!damaged.empty()) damage(damaged, random);
        }
        ASSERT_NO_FATAL_FAILURE(compare(damaged, elements * kinds.size())) << elements << " " << round;
      }
    }
  }
  EXPECT_GT(tally_.by_both, 1000U);
  EXPECT_GT(tally_.by_none, 1000U);
}

INSTANTIATE_TEST_SUITE_P(Width, LiteralsDecoderOfDamage, ::testing::Values(1, 2, 4, 8));

}  // namespace
}  // namespace holdfast::format
