// Each field is copied to its place, so that the layout does not depend on a compiler. No field is trusted: bodies are
// placed by what the receiver expects, never by what a header says.

#include "collective/hosts/frame.h"

#include <fmt/format.h>
#include <cstring>

namespace holdfast {
namespace {

constexpr std::uint32_t kFrameMagic = 0x314C'4648;  // "HFL1"

// Where the fields lie. Two bytes at kUnusedAt are zero.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kKindAt = 4;
constexpr std::size_t kFiniteAt = 5;
constexpr std::size_t kLaneAt = 6;
constexpr std::size_t kHostAt = 8;
constexpr std::size_t kUnusedAt = 10;
constexpr std::size_t kCallAt = 12;
constexpr std::size_t kGenerationAt = 16;
constexpr std::size_t kIndexAt = 24;
constexpr std::size_t kBytesAt = 28;

template <class Number>
void put(FrameHeader& header, std::size_t at, Number number) {
  // In the byte order of this host, which is one in a run. Another one shows in the magic number.
  std::memcpy(header.data() + at, &number, sizeof number);
}

template <class Number>
Number get(const FrameHeader& header, std::size_t at) {
  Number number{};
  std::memcpy(&number, header.data() + at, sizeof number);
  return number;
}

// Whether this is a frame at all. That is asked before any other field is compared, so that an error about bytes of
// another program does not speak of another generation.
bool is_frame(const FrameHeader& header) {
  // The values of FrameKind are 1 to 4.
  const auto kind = get<std::uint8_t>(header, kKindAt);
  return get<std::uint32_t>(header, kMagicAt) == kFrameMagic && kind >= 1 && kind <= 4 &&
         get<std::uint8_t>(header, kFiniteAt) <= 1 && get<std::uint16_t>(header, kUnusedAt) == 0;
}

}  // namespace

std::string_view to_string(FrameFault fault) {
  switch (fault) {
    case FrameFault::garbage:
      return "garbage";
    case FrameFault::other_generation:
      return "other_generation";
    case FrameFault::other_lane:
      return "other_lane";
    case FrameFault::other_call:
      return "other_call";
    case FrameFault::other_content:
      return "other_content";
  }
  return "unknown";
}

FrameHeader to_header(const FrameOrigin& origin, const Frame& frame) {
  FrameHeader header{};
  put(header, kMagicAt, kFrameMagic);
  put(header, kKindAt, static_cast<std::uint8_t>(frame.kind));
  put(header, kFiniteAt, static_cast<std::uint8_t>(frame.is_finite));
  put(header, kLaneAt, static_cast<std::uint16_t>(origin.lane));
  put(header, kHostAt, static_cast<std::uint16_t>(origin.host));
  put(header, kCallAt, origin.call);
  put(header, kGenerationAt, origin.generation);
  put(header, kIndexAt, frame.index);
  put(header, kBytesAt, frame.bytes);
  return header;
}

Frame from_header(const FrameHeader& header, const FrameOrigin& expected) {
  if (!is_frame(header)) throw FrameError(FrameFault::garbage, "it is not a message of Holdfast");
  // The generation comes first: a frame of another one may well have another lane and call too.
  const auto generation = get<std::uint64_t>(header, kGenerationAt);
  if (generation != expected.generation) {
    throw FrameError(FrameFault::other_generation, fmt::format("it belongs to generation {}, and this is generation {}",
                                                               generation, expected.generation));
  }
  const auto lane = get<std::uint16_t>(header, kLaneAt);
  const auto host = get<std::uint16_t>(header, kHostAt);
  // A connection is for one lane and one host, so the connections themselves were mixed up.
  if (lane != expected.lane || host != expected.host) {
    throw FrameError(FrameFault::other_lane, fmt::format("it comes from host {} on lane {}, and this connection is for "
                                                         "host {} on lane {}",
                                                         host, lane, expected.host, expected.lane));
  }
  const auto call = get<std::uint32_t>(header, kCallAt);
  // All else is right, so the two replicas make different collective calls.
  if (call != expected.call) {
    throw FrameError(FrameFault::other_call, fmt::format("it belongs to collective call {} of the generation, and this "
                                                         "is call {}",
                                                         call, expected.call));
  }
  return {.kind = static_cast<FrameKind>(get<std::uint8_t>(header, kKindAt)),
          .is_finite = get<std::uint8_t>(header, kFiniteAt) != 0,
          .index = get<std::uint32_t>(header, kIndexAt),
          .bytes = get<std::uint32_t>(header, kBytesAt)};
}

}  // namespace holdfast
