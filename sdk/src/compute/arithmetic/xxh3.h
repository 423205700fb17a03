#pragma once

// XXH3-128 (Yann Collet; xxHash's doc/xxhash_spec.md 0.2.0) with seed 0 and the default secret, for host and device.
// The input consists of 32-bit words, as the leaves of digests of arrays do. A `Words` provides them; it has
//
//   std::uint32_t read32(std::uint32_t offset)    offsets are in bytes and multiples of 4
//   std::uint64_t read64(std::uint32_t offset)    little-endian
//
// Inputs of more than 240 bytes go through eight accumulators that are nearly independent. One thread may keep all of
// them, or eight threads one each. A `Lanes` keeps them; see AllLanes.

#include <cstddef>
#include <cstdint>

#include "core/host_device.h"
#include "holdfast/base/digest.h"

namespace holdfast::compute {

struct Hash128 {
  std::uint64_t low;
  std::uint64_t high;
};

// The canonical form: big-endian, with the higher half first. For the host.
inline Digest digest_of(const Hash128& hash) {
  Digest digest;
  for (std::size_t i = 0; i < 8; ++i) {
    digest.bytes[i] = static_cast<std::uint8_t>(hash.high >> (56 - 8 * i));
    digest.bytes[8 + i] = static_cast<std::uint8_t>(hash.low >> (56 - 8 * i));
  }
  return digest;
}

namespace xxh3 {

inline constexpr std::uint32_t kStripeBytes = 64;
inline constexpr std::uint32_t kStripesOfBlock = 16;
inline constexpr std::uint32_t kLanes = 8;
// Inputs of up to so many bytes are hashed by short_hash(), longer ones by long_hash().
inline constexpr std::uint32_t kLargestShort = 240;

inline constexpr std::uint64_t kPrime32_1 = 0x9E3779B1;
inline constexpr std::uint64_t kPrime32_2 = 0x85EBCA77;
inline constexpr std::uint64_t kPrime32_3 = 0xC2B2AE3D;
inline constexpr std::uint64_t kPrime64_1 = 0x9E3779B185EBCA87;
inline constexpr std::uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4F;
inline constexpr std::uint64_t kPrime64_3 = 0x165667B19E3779F9;
inline constexpr std::uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63;
inline constexpr std::uint64_t kPrime64_5 = 0x27D4EB2F165667C5;
inline constexpr std::uint64_t kPrimeMix1 = 0x165667919E3779F9;
inline constexpr std::uint64_t kPrimeMix2 = 0x9FB21C651E98DF25;

// The default secret, 192 bytes as little-endian words.
HOLDFAST_SHARED_CONSTANT std::uint64_t kSecret[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb,
    0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088,
    0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a,
    0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

HOLDFAST_SHARED_CONSTANT std::uint64_t kFirstAccumulators[kLanes] = {kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3,
                                                                     kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};

// Eight bytes of the secret from any byte on.
HOLDFAST_HOST_DEVICE inline std::uint64_t secret_at(std::uint32_t byte) {
  const std::uint32_t shift = byte % 8 * 8;
  const std::uint64_t word = kSecret[byte / 8];
  return shift == 0 ? word : word >> shift | kSecret[byte / 8 + 1] << (64 - shift);
}

HOLDFAST_HOST_DEVICE inline Hash128 multiply(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return {a * b, __umul64hi(a, b)};
#else
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#endif
}

HOLDFAST_HOST_DEVICE inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const Hash128 product = multiply(a, b);
  return product.low ^ product.high;
}

HOLDFAST_HOST_DEVICE inline std::uint64_t swap_bytes(std::uint64_t x) {
  x = (x & 0x00FF00FF00FF00FF) << 8 | (x >> 8 & 0x00FF00FF00FF00FF);
  x = (x & 0x0000FFFF0000FFFF) << 16 | (x >> 16 & 0x0000FFFF0000FFFF);
  return x << 32 | x >> 32;
}

HOLDFAST_HOST_DEVICE inline std::uint64_t avalanche(std::uint64_t x) {
  x ^= x >> 37;
  x *= kPrimeMix1;
  return x ^ x >> 32;
}

// As in XXH64.
HOLDFAST_HOST_DEVICE inline std::uint64_t long_avalanche(std::uint64_t x) {
  x ^= x >> 33;
  x *= kPrime64_2;
  x ^= x >> 29;
  x *= kPrime64_3;
  return x ^ x >> 32;
}

HOLDFAST_HOST_DEVICE inline Hash128 hash_of_nothing() {
  return {long_avalanche(secret_at(64) ^ secret_at(72)), long_avalanche(secret_at(80) ^ secret_at(88))};
}

// 4 to 8 bytes.
template <class Words>
HOLDFAST_HOST_DEVICE Hash128 hash_4_to_8(const Words& words, std::uint32_t bytes) {
  const std::uint64_t input = words.read32(0) | static_cast<std::uint64_t>(words.read32(bytes - 4)) << 32;
  Hash128 hash = multiply(secret_at(16) ^ secret_at(24) ^ input, kPrime64_1 + (bytes << 2));
  hash.high += hash.low << 1;
  hash.low ^= hash.high >> 3;
  hash.low ^= hash.low >> 35;
  hash.low *= kPrimeMix2;
  hash.low ^= hash.low >> 28;
  hash.high = avalanche(hash.high);
  return hash;
}

// 9 to 16 bytes.
template <class Words>
HOLDFAST_HOST_DEVICE Hash128 hash_9_to_16(const Words& words, std::uint32_t bytes) {
  const std::uint64_t first = words.read64(0);
  const std::uint64_t last = words.read64(bytes - 8);
  const std::uint64_t mixed_last = secret_at(48) ^ secret_at(56) ^ last;
  Hash128 hash = multiply(secret_at(32) ^ secret_at(40) ^ first ^ last, kPrime64_1);
  hash.low += static_cast<std::uint64_t>(bytes - 1) << 54;
  hash.high += (mixed_last >> 32 << 32) + static_cast<std::uint32_t>(mixed_last) * kPrime32_2;
  hash.low ^= swap_bytes(hash.high);
  const Hash128 product = multiply(hash.low, kPrime64_2);
  return {avalanche(product.low), avalanche(product.high + hash.high * kPrime64_2)};
}

template <class Words>
HOLDFAST_HOST_DEVICE std::uint64_t mix_16(const Words& words, std::uint32_t offset, std::uint32_t secret) {
  return folded_product(words.read64(offset) ^ secret_at(secret), words.read64(offset + 8) ^ secret_at(secret + 8));
}

// Two pieces of 16 bytes into both halves.
template <class Words>
HOLDFAST_HOST_DEVICE void mix_32(Hash128& sums, const Words& words, std::uint32_t first, std::uint32_t second,
                                 std::uint32_t secret) {
  sums.low += mix_16(words, first, secret);
  sums.low ^= words.read64(second) + words.read64(second + 8);
  sums.high += mix_16(words, second, secret + 16);
  sums.high ^= words.read64(first) + words.read64(first + 8);
}

HOLDFAST_HOST_DEVICE inline Hash128 finish_medium(const Hash128& sums, std::uint32_t bytes) {
  const std::uint64_t high = sums.low * kPrime64_1 + sums.high * kPrime64_4 + bytes * kPrime64_2;
  return {avalanche(sums.low + sums.high), 0 - avalanche(high)};
}

// 17 to 128 bytes: pairs of pieces, from the middle out.
template <class Words>
HOLDFAST_HOST_DEVICE Hash128 hash_17_to_128(const Words& words, std::uint32_t bytes) {
  Hash128 sums = {bytes * kPrime64_1, 0};
  for (std::uint32_t pair = (bytes - 1) / 32 + 1; pair-- > 0;) {
    mix_32(sums, words, 16 * pair, bytes - 16 * (pair + 1), 32 * pair);
  }
  return finish_medium(sums, bytes);
}

// 129 to 240 bytes.
template <class Words>
HOLDFAST_HOST_DEVICE Hash128 hash_129_to_240(const Words& words, std::uint32_t bytes) {
  constexpr std::uint32_t kFirstRounds = 4;
  Hash128 sums = {bytes * kPrime64_1, 0};
  for (std::uint32_t round = 0; round < bytes / 32; ++round) {
    if (round == kFirstRounds) sums = {avalanche(sums.low), avalanche(sums.high)};
    const std::uint32_t secret = round < kFirstRounds ? 32 * round : 3 + 32 * (round - kFirstRounds);
    mix_32(sums, words, 32 * round, 32 * round + 16, secret);
  }
  if (bytes / 32 == kFirstRounds) sums = {avalanche(sums.low), avalanche(sums.high)};
  mix_32(sums, words, bytes - 16, bytes - 32, 103);
  return finish_medium(sums, bytes);
}

// Hashes 0 or 4 to 240 bytes, a multiple of 4.
template <class Words>
HOLDFAST_HOST_DEVICE Hash128 short_hash(const Words& words, std::uint32_t bytes) {
  if (bytes == 0) return hash_of_nothing();
  if (bytes <= 8) return hash_4_to_8(words, bytes);
  if (bytes <= 16) return hash_9_to_16(words, bytes);
  if (bytes <= 128) return hash_17_to_128(words, bytes);
  return hash_129_to_240(words, bytes);
}

// What a lane's own eight bytes add to its accumulator; the bytes themselves are added to that of lane ^ 1.
HOLDFAST_HOST_DEVICE inline std::uint64_t lane_product(std::uint64_t bytes, std::uint64_t secret) {
  const std::uint64_t mixed = bytes ^ secret;
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(mixed)) * (mixed >> 32);
}

HOLDFAST_HOST_DEVICE inline std::uint64_t scrambled(std::uint64_t accumulator, std::uint64_t secret) {
  return ((accumulator ^ accumulator >> 47) ^ secret) * kPrime32_1;
}

// Where in the secret the keys of lane 0 are; those of each further lane are eight bytes further on. A stripe's are at
// eight times its number in the block.
inline constexpr std::uint32_t kScrambleSecret = 128;
inline constexpr std::uint32_t kLastStripeSecret = 121;

HOLDFAST_HOST_DEVICE inline std::uint64_t merged(const std::uint64_t (&accumulators)[kLanes], std::uint32_t secret,
                                                 std::uint64_t start) {
  for (std::uint32_t pair = 0; pair < kLanes / 2; ++pair) {
    start += folded_product(accumulators[2 * pair] ^ secret_at(secret + 16 * pair),
                            accumulators[2 * pair + 1] ^ secret_at(secret + 16 * pair + 8));
  }
  return avalanche(start);
}

// The hash, from the final content of the accumulators.
HOLDFAST_HOST_DEVICE inline Hash128 finish_long(const std::uint64_t (&accumulators)[kLanes], std::uint32_t bytes) {
  return {merged(accumulators, 11, bytes * kPrime64_1), merged(accumulators, 117, ~(bytes * kPrime64_2))};
}

// All accumulators in one thread.
class AllLanes {
 public:
  HOLDFAST_HOST_DEVICE AllLanes() {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) accumulators_[lane] = kFirstAccumulators[lane];
  }

  // The stripe of 64 bytes at `offset`, with the secret of stripe `stripe_of_block`.
  template <class Words>
  HOLDFAST_HOST_DEVICE void add(const Words& words, std::uint32_t offset, std::uint32_t stripe_of_block) {
    add_with(words, offset, 8 * stripe_of_block);
  }
  template <class Words>
  HOLDFAST_HOST_DEVICE void add_last(const Words& words, std::uint32_t offset) {
    add_with(words, offset, kLastStripeSecret);
  }
  HOLDFAST_HOST_DEVICE void scramble() {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      accumulators_[lane] = scrambled(accumulators_[lane], secret_at(kScrambleSecret + 8 * lane));
    }
  }
  HOLDFAST_HOST_DEVICE Hash128 finish(std::uint32_t bytes) const { return finish_long(accumulators_, bytes); }

 private:
  template <class Words>
  HOLDFAST_HOST_DEVICE void add_with(const Words& words, std::uint32_t offset, std::uint32_t secret) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t bytes = words.read64(offset + 8 * lane);
      accumulators_[lane] += lane_product(bytes, secret_at(secret + 8 * lane));
      accumulators_[lane ^ 1] += bytes;
    }
  }

  std::uint64_t accumulators_[kLanes];
};

// Hashes more than 240 bytes, a multiple of 4. `lanes` must be new.
template <class Lanes, class Words>
HOLDFAST_HOST_DEVICE Hash128 long_hash(Lanes& lanes, const Words& words, std::uint32_t bytes) {
  const std::uint32_t stripes = (bytes - 1) / kStripeBytes;  // but the last, which ends with the input
  const std::uint32_t whole_blocks = stripes / kStripesOfBlock;
  for (std::uint32_t block = 0; block < whole_blocks; ++block) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (std::uint32_t stripe = 0; stripe < kStripesOfBlock; ++stripe) {
      lanes.add(words, (block * kStripesOfBlock + stripe) * kStripeBytes, stripe);
    }
    lanes.scramble();
  }
  // This loop has a fixed number of rounds too, so that `lanes` can keep the data of each stripe in registers.
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (std::uint32_t stripe = 0; stripe < kStripesOfBlock; ++stripe) {
    if (stripe >= stripes % kStripesOfBlock) break;
    lanes.add(words, (whole_blocks * kStripesOfBlock + stripe) * kStripeBytes, stripe);
  }
  lanes.add_last(words, bytes - kStripeBytes);
  return lanes.finish(bytes);
}

}  // namespace xxh3
}  // namespace holdfast::compute
