// The tree of XXH3-128 of digest.h. Every byte of a run passes through here several times: states are
// compared, savepoints written and read back. So the hash is chosen for the processor at run time, and
// leaves can be computed by several threads. See docs/decisions/savepoint-file.md.

#include "holdfast/base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

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
  struct FreeHash {
    void operator()(XXH3_state_t* hash) const { XXH3_freeState(hash); }
  };

  std::vector<Digest> leaves;
  std::unique_ptr<XXH3_state_t, FreeHash> unfinished;  // the hash of the leaf that is not complete; made when needed
  std::size_t unfinished_bytes = 0;                    // 0: no leaf has begun
  std::uint64_t length = 0;

  void begin_leaf() {
    if (unfinished == nullptr) unfinished.reset(XXH3_createState());
    if (unfinished == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(unfinished.get());
  }
  void finish_leaf() {
    leaves.push_back(canonical(XXH3_128bits_digest(unfinished.get())));
    unfinished_bytes = 0;
  }
};

DigestBuilder::DigestBuilder() : state_(std::make_unique<State>()) {}
DigestBuilder::~DigestBuilder() = default;
DigestBuilder::DigestBuilder(DigestBuilder&&) noexcept = default;
DigestBuilder& DigestBuilder::operator=(DigestBuilder&&) noexcept = default;

void DigestBuilder::update(std::span<const std::byte> bytes) {
  HOLDFAST_ASSERT(state_ != nullptr);
  state_->length += bytes.size();
  while (!bytes.empty()) {
    std::size_t& unfinished = state_->unfinished_bytes;
    const std::size_t count = std::min(kLeafBytes - unfinished, bytes.size());
    // A whole leaf is hashed in one call, which is quicker than by way of a state.
    if (count == kLeafBytes) {
      state_->leaves.push_back(digest_leaf(bytes.first(count)));
    } else {
      if (unfinished == 0) state_->begin_leaf();
      XXH3_128bits_update(state_->unfinished.get(), bytes.data(), count);
      unfinished += count;
      if (unfinished == kLeafBytes) state_->finish_leaf();
    }
    bytes = bytes.subspan(count);
  }
}

Digest DigestBuilder::finish() {
  HOLDFAST_ASSERT(state_ != nullptr);
  // The builder is used up: a second call would meet the assertion and not get the digest of
  // nothing.
  const std::unique_ptr<State> state = std::move(state_);
  if (state->unfinished_bytes > 0) state->finish_leaf();
  return digest_of_leaves(state->leaves, state->length);
}

Digest digest(std::span<const std::byte> bytes) {
  std::vector<Digest> leaves;
  leaves.reserve((bytes.size() + DigestBuilder::kLeafBytes - 1) / DigestBuilder::kLeafBytes);
  for (std::size_t begin = 0; begin < bytes.size(); begin += DigestBuilder::kLeafBytes) {
    leaves.push_back(digest_leaf(bytes.subspan(begin, std::min(DigestBuilder::kLeafBytes, bytes.size() - begin))));
  }
  return digest_of_leaves(leaves, bytes.size());
}

}  // namespace holdfast
