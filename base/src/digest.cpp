#include "holdfast/base/digest.h"

#include <xxhash.h>

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

void append_canonical(std::vector<std::uint8_t>& out, XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  out.insert(out.end(), std::begin(canonical.digest), std::end(canonical.digest));
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Digest Digest::from_hex(std::string_view text) {
  Digest digest;
  const bool has_length = text.size() == 2 * digest.bytes.size();
  if (!has_length || !std::all_of(text.begin(), text.end(), [](char c) { return hex_value(c) >= 0; })) {
    throw Error(ErrorCode::invalid_argument, "\"" + std::string(text) + "\" is no digest: 32 hexadecimal digits are");
  }
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    digest.bytes[i] = static_cast<std::uint8_t>(hex_value(text[2 * i]) * 16 + hex_value(text[2 * i + 1]));
  }
  return digest;
}

struct DigestBuilder::State {
  std::vector<std::uint8_t> leaves;   // canonical leaf digests, one after another
  std::vector<std::byte> unfinished;  // bytes of the leaf that is not full yet
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
  if (!unfinished.empty()) {
    const std::size_t wanted = std::min(kLeafBytes - unfinished.size(), bytes.size());
    unfinished.insert(unfinished.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(wanted));
    bytes = bytes.subspan(wanted);
    if (unfinished.size() < kLeafBytes) return;
    append_canonical(state_->leaves, XXH3_128bits(unfinished.data(), unfinished.size()));
    unfinished.clear();
  }
  for (; bytes.size() >= kLeafBytes; bytes = bytes.subspan(kLeafBytes)) {
    append_canonical(state_->leaves, XXH3_128bits(bytes.data(), kLeafBytes));
  }
  unfinished.assign(bytes.begin(), bytes.end());
}

Digest DigestBuilder::finish() {
  HOLDFAST_ASSERT(state_ != nullptr);
  const std::unique_ptr<State> state = std::move(state_);
  if (!state->unfinished.empty()) {
    append_canonical(state->leaves, XXH3_128bits(state->unfinished.data(), state->unfinished.size()));
  }
  for (int shift = 0; shift < 64; shift += 8) {
    state->leaves.push_back(static_cast<std::uint8_t>(state->length >> shift));
  }
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(state->leaves.data(), state->leaves.size()));
  Digest digest;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), digest.bytes.begin());
  return digest;
}

Digest digest(std::span<const std::byte> bytes) {
  DigestBuilder builder;
  builder.update(bytes);
  return builder.finish();
}

}  // namespace holdfast
