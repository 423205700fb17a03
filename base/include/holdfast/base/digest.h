#pragma once

// The digest of all state, arrays and files of Holdfast: a tree of XXH3-128 over 64 KiB leaves.
//
//   leaf i = XXH3-128(bytes [65536 i, 65536 (i + 1)))          the last leaf may be shorter; no bytes give no leaf
//   digest = XXH3-128(leaf 0 .. leaf n-1, each 16 bytes in XXH128 canonical (big-endian) form, then the length as u64
//            little-endian)
//
// Leaves are independent, so that several threads or a GPU can compute them. XXH3 (Yann Collet, xxHash 0.8) detects
// damage, not malice: it is not a cryptographic hash.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct Digest {
  std::array<std::uint8_t, 16> bytes{};

  // 32 lower-case hexadecimal digits.
  std::string hex() const;
  // Of the digits that hex() gives. Throws Error{invalid_argument} for anything else.
  static Digest from_hex(std::string_view text);

  friend bool operator==(const Digest&, const Digest&) = default;
};

// Takes the bytes in pieces of any size; equal to digest() of all of them. Not for several threads at once.
class DigestBuilder {
 public:
  static constexpr std::size_t kLeafBytes = std::size_t{64} * 1024;

  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(DigestBuilder&&) noexcept;
  DigestBuilder& operator=(DigestBuilder&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // The builder is spent afterwards.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest(std::span<const std::byte> bytes);

// The tree's parts, for those who compute its leaves in several threads: the digest of `length` bytes is
// digest_of_leaves() of digest_leaf() of each kLeafBytes of them, in order.
Digest digest_leaf(std::span<const std::byte> bytes);
Digest digest_of_leaves(std::span<const Digest> leaves, std::uint64_t length);

}  // namespace holdfast
