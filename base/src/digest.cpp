// The tree of XXH3-128 of digest.h. Every byte of a run passes through here several times: states are
// compared, savepoints written and read back. So the hash is chosen for the processor at run time, and
// leaves can be computed by several threads. See docs/decisions/savepoint-file.md.

#include "holdfast/base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "holdfast/base/error.h"

// Chooses the hash's vector code at run time: Debian's library is otherwise compiled for the oldest
// processor. Chunks of fp32 are saved and loaded 7 % faster with it (one core of a Xeon, libxxhash
// 0.8.1, 2026-11-21).
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

namespace holdfast {
namespace {

// The canonical form is big-endian, and so the same on every machine.
Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t form;
  XXH128_canonicalFromHash(&form, hash);
  return std::bit_cast<Digest>(form);
}

// Upper-case digits are refused, so that a digest has one spelling and can be compared as text.
int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Digest Digest::from_hex(std::string_view text) {
  Digest digest;
  const bool has_length = text.size() == 2 * digest.bytes.size();
  if (!has_length || !std::all_of(text.begin(), text.end(), [](char c) { return hex_value(c) >= 0; })) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a digest; give 32 lower-case hexadecimal digits", text));
  }
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    digest.bytes[i] = static_cast<std::uint8_t>(hex_value(text[2 * i]) * 16 + hex_value(text[2 * i + 1]));
  }
  return digest;
}

Digest digest_leaf(std::span<const std::byte> bytes) {
  HOLDFAST_ASSERT(bytes.size() <= DigestBuilder::kLeafBytes);
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest_of_leaves(std::span<const Digest> leaves, std::uint64_t length) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve((leaves.size() + 1) * sizeof(Digest));
  for (const Digest& leaf : leaves) bytes.insert(bytes.end(), leaf.bytes.begin(), leaf.bytes.end());
  // The length goes in with its lowest byte first on every machine, because digests are stored in
  // files.
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<std::uint8_t>(length >> shift));
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

struct DigestBuilder::State {
  std::vector<Digest> leaves;
  std::vector<std::byte> unfinished;  // bytes of the leaf that is not complete
  std::uint64_t length = 0;
};

DigestBuilder::DigestBuilder() : state_(std::make_unique<State>()) {}
DigestBuilder::~DigestBuilder() = default;
DigestBuilder::DigestBuilder(DigestBuilder&&) noexcept = default;
DigestBuilder& DigestBuilder::operator=(DigestBuilder&&) noexcept = default;

void DigestBuilder::update(std::span<const std::byte> bytes) {
  HOLDFAST_ASSERT(state_ != nullptr);
  state_->length += bytes.size();
  std::vector<std::byte>& unfinished = state_->unfinished;
  // Completes the leaf that earlier calls left unfinished.
  if (!unfinished.empty()) {
    const std::size_t wanted = std::min(kLeafBytes - unfinished.size(), bytes.size());
    unfinished.insert(unfinished.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(wanted));
    bytes = bytes.subspan(wanted);
    if (unfinished.size() < kLeafBytes) return;
    state_->leaves.push_back(digest_leaf(unfinished));
    unfinished.clear();
  }
  // Whole leaves are hashed where they are, without a copy.
  for (; bytes.size() >= kLeafBytes; bytes = bytes.subspan(kLeafBytes)) {
    state_->leaves.push_back(digest_leaf(bytes.first(kLeafBytes)));
  }
  unfinished.assign(bytes.begin(), bytes.end());
}

Digest DigestBuilder::finish() {
  HOLDFAST_ASSERT(state_ != nullptr);
  // The builder is used up: a second call would meet the assertion and not get the digest of
  // nothing.
  const std::unique_ptr<State> state = std::move(state_);
  if (!state->unfinished.empty()) state->leaves.push_back(digest_leaf(state->unfinished));
  return digest_of_leaves(state->leaves, state->length);
}

Digest digest(std::span<const std::byte> bytes) {
  DigestBuilder builder;
  builder.update(bytes);
  return builder.finish();
}

}  // namespace holdfast
