#pragma once

// The digest of all state, arrays and files of Holdfast: a tree of XXH3-128 over leaves of 64 KiB.
// Equal bytes have equal digests on every machine, however many threads computed them.
//
//   leaf i = XXH3-128(bytes [65536 i, 65536 (i + 1)))          the last leaf may be shorter; no bytes give no leaf
//   digest = XXH3-128(leaf 0 .. leaf n-1, each 16 bytes in XXH128 canonical (big-endian) form, then the length as u64
//            little-endian)
//
// Leaves are independent, so several threads or a GPU can compute them. XXH3 (Yann Collet, xxHash 0.8)
// detects damage, not malice: it is not a cryptographic hash. docs/format.md has test values.
//
//   const Digest before = digest(std::as_bytes(std::span(weights)));
//   std::cout << before.hex();  // "2c0a8a99dc147d5445c3b49d035665b2" for no bytes at all

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// A value: 16 bytes, compared byte by byte.
struct Digest {
  std::array<std::uint8_t, 16> bytes{};  // the canonical form of XXH3-128, which is big-endian

  // 32 lower-case hexadecimal digits.
  std::string hex() const;
  // The digest whose hex() is `text`. Throws Error{invalid_argument} for any other text.
  static Digest from_hex(std::string_view text);

  friend bool operator==(const Digest&, const Digest&) = default;
};

// The digest of bytes that come in pieces of any size. The result equals digest() of all of them.
// One thread at a time may use a builder. It holds at most one unfinished leaf and the digests of the
// others, 16 bytes for each 64 KiB.
class DigestBuilder {
 public:
  static constexpr std::size_t kLeafBytes = std::size_t{64} * 1024;  // of content, for each leaf

  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(DigestBuilder&&) noexcept;
  DigestBuilder& operator=(DigestBuilder&&) noexcept;

  // Appends `bytes`, which may be of any length, also 0.
  void update(std::span<const std::byte> bytes);
  // Returns the digest. No other call is allowed afterwards.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The digest of bytes that lie in memory, computed on this thread.
Digest digest(std::span<const std::byte> bytes);

// The parts of the tree, for code that computes leaves in several threads. The digest of `length` bytes
// is digest_of_leaves() of the digest_leaf() of each kLeafBytes of them, in order. `bytes` of a leaf
// are at most kLeafBytes.
Digest digest_leaf(std::span<const std::byte> bytes);
Digest digest_of_leaves(std::span<const Digest> leaves, std::uint64_t length);

}  // namespace holdfast
