// Limits are checked before the bytes that they limit have come, so a peer can make this process keep little.
// docs/decisions/host-connections.md

#include "hosts/frames.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr int kMostDepth = 16;
// In memory a value takes more bytes than in a text, so the length alone does not limit the memory.
constexpr std::size_t kMostValues = std::size_t{1} << 18;

[[noreturn]] void refuse_bytes(const std::string& what) {
  throw Error(ErrorCode::input_output, fmt::format("the peer sent bytes that are not a message: {}", what));
}

nlohmann::json parse_message(std::string_view text) {
  std::size_t values = 0;
  const auto check = [&values](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMostDepth) refuse_bytes(fmt::format("it is nested more than {} deep", kMostDepth));
    if (++values > kMostValues) refuse_bytes(fmt::format("it has more than {} values", kMostValues));
    return true;
  };
  nlohmann::json message;
  try {
    message = nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::exception&) {
    refuse_bytes("it is not JSON");
  }
  // Every receiver looks at the kind, so a message without one goes no further.
  const auto kind = message.is_object() ? message.find("kind") : message.end();
  if (!message.is_object() || kind == message.end() || !kind->is_string()) refuse_bytes("it has no kind");
  return message;
}

}  // namespace

std::string frame_of(const nlohmann::json& message) {
  std::string text;
  try {
    text = message.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::invalid_argument, "a message to another host has text that is not UTF-8");
  }
  if (text.size() > kMostFrameBytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a message to another host has {} bytes, but at most {} are possible", text.size(),
                            kMostFrameBytes));
  }
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>((text.size() >> shift) & 0xFFU);
  return frame + text;
}

void FrameReader::take(std::span<const std::byte> bytes) {
  // Moved seldom, so that many small messages in one piece do not cost their square.
  if (read_ > bytes_.size() / 2) {
    bytes_.erase(0, read_);
    read_ = 0;
  }
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<nlohmann::json> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length = length << 8U | static_cast<std::uint8_t>(rest[i]);
  // Checked before the bytes are there: a stranger must not make this process keep them.
  // The limit rises once the peer is known, also for a frame that has begun to arrive.
  if (length > most_bytes_)
    refuse_bytes(fmt::format("it has {} bytes, but at most {} are possible", length, most_bytes_));
  if (rest.size() - kLengthBytes < length) return std::nullopt;
  read_ += kLengthBytes + length;
  return parse_message(rest.substr(kLengthBytes, length));
}

}  // namespace holdfast::recovery
