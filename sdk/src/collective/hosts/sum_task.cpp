// The exchange of the plain all-to-all sum: each host adds one part. In a hop the values go to the host that adds them,
// in a second one the sums come back. With one partial sum for each host, every host sends and receives 2 (H - 1) / H
// blocks altogether, as a ring does in 2 (H - 1) hops.
//
// Memory in which values arrive is bounded. This cannot stop all: the piece that is added next always has room, the
// values of a host arrive in order, and sums have room always. docs/decisions/hosts.md

#include "collective/hosts/sum_task.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "collective/memory/ordered_add.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// How many pieces may arrive from a host before those of the others. More would only need more memory: a host that is
// so far ahead has to wait for the others anyway.
constexpr std::uint32_t kPiecesOfRoom = 4;

}  // namespace

SumTask::SumTask(const HostLayout& layout, const HostSums& programs, Room& room, Options options)
    : layout_(layout), programs_(programs), room_(room), options_(std::move(options)) {
  HOLDFAST_ASSERT(options_.piece_floats > 0);
  const auto hosts = static_cast<std::size_t>(layout.hosts());
  room_.arrived.resize(hosts);
  room_.leaving.resize(hosts);
  for (int host = 0; host < layout.hosts(); ++host) {
    const FloatRange part = segment_of(host, layout.hosts(), options_.range);
    const std::size_t pieces = (part.end - part.begin + options_.piece_floats - 1) / options_.piece_floats;
    progress_.push_back(
        {.part = part,
         .pieces = static_cast<std::uint32_t>(pieces),
         .partials = static_cast<std::uint32_t>(programs.partials_of_host[static_cast<std::size_t>(host)])});
  }
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == options_.own_host) continue;
    // Memory for what this rank adds: a few pieces of each host's partial sums. It is kept from step to step.
    const std::size_t frames = std::size_t{std::min(own().pieces, kPiecesOfRoom)} * of(host).partials;
    std::vector<float>& arrived = room_.arrived[static_cast<std::size_t>(host)];
    const std::size_t piece_floats = std::min(options_.piece_floats, own().part.end - own().part.begin);
    if (arrived.size() < frames * piece_floats) arrived.resize(frames * piece_floats);
  }
  add_what_has_arrived();  // all, where there is one host
}

FloatRange SumTask::piece(const Progress& host, std::uint32_t number) const {
  const std::size_t begin = host.part.begin + std::size_t{number} * options_.piece_floats;
  return {begin, std::min(host.part.end, begin + options_.piece_floats)};
}

std::optional<OutgoingFrame> SumTask::next_for(int host) {
  Progress& to = of(host);
  // Sums first: a host may be waiting for them alone.
  if (to.sums_sent < added_) {
    const FloatRange range = piece(own(), to.sums_sent);
    const auto body = std::as_bytes(std::span(sum_at(range.begin), range.end - range.begin));
    return OutgoingFrame{.frame = {.kind = FrameKind::sums,
                                   .is_finite = is_finite_,
                                   .index = to.sums_sent++,
                                   .bytes = static_cast<std::uint32_t>(body.size())},
                         .body = {body}};
  }
  if (to.values_sent == to.pieces * own().partials) return std::nullopt;
  const std::uint32_t index = to.values_sent++;
  const FloatRange range = piece(to, index / own().partials);
  const auto bytes = static_cast<std::uint32_t>((range.end - range.begin) * sizeof(float));
  return OutgoingFrame{.frame = {.kind = FrameKind::values, .index = index, .bytes = bytes},
                       .body = partial(host, index % own().partials, range)};
}

bool SumTask::has_sent_all(int host) const {
  const Progress& to = of(host);
  return to.sums_sent == own().pieces && to.values_sent == to.pieces * own().partials;
}

// A partial sum that a single rank has is sent from where it lies.
ConstFrameBody SumTask::partial(int host, std::uint32_t number, FloatRange range) {
  const HostSums::Partial& partial = programs_.partials[number];
  const std::size_t floats = range.end - range.begin;
  const auto leaves = std::span(options_.leaves).subspan(partial.first_leaf, partial.leaves);
  if (leaves.size() == 1) return {std::as_bytes(std::span(leaves[0] + range.begin, floats))};
  std::vector<float>& leaving = room_.leaving[static_cast<std::size_t>(host)];
  if (leaving.size() < floats) leaving.resize(std::max(floats, options_.piece_floats));
  add_in_order(partial.program, leaves, range, leaving.data());
  return {std::as_bytes(std::span(leaving.data(), floats))};
}

std::optional<FrameBody> SumTask::place_for(int host, const Frame& frame) {
  Progress& from = of(host);
  const std::uint32_t bytes = expected_bytes(host, frame);
  const auto body = [&](float* place) {
    return FrameBody{std::as_writable_bytes(std::span(place, bytes / sizeof(float)))};
  };
  if (frame.kind == FrameKind::sums) return body(sum_at(piece(from, frame.index).begin));
  // The place of this piece is still in use. The stream holds the frame, and asks again.
  if (frame.index / from.partials >= added_ + kPiecesOfRoom) return std::nullopt;
  return body(arrived(host, frame.index));
}

// Throws if the frame is not the one that comes next.
std::uint32_t SumTask::expected_bytes(int host, const Frame& frame) const {
  const Progress& from = of(host);
  const bool is_sums = frame.kind == FrameKind::sums;
  const std::uint32_t next = is_sums ? from.sums_received : from.values_received;
  const std::uint32_t frames = is_sums ? from.pieces : own().pieces * from.partials;
  const bool is_known = is_sums || frame.kind == FrameKind::values;
  std::size_t bytes = 0;
  if (is_known && next < frames) {
    const FloatRange range = is_sums ? piece(from, next) : piece(own(), next / from.partials);
    bytes = (range.end - range.begin) * sizeof(float);
  }
  if (!is_known || next >= frames || frame.index != next || frame.bytes != bytes) {
    throw FrameError(FrameFault::other_content,
                     fmt::format("it is message {} of kind {} with {} bytes, and in this sum message {} of {} with {} "
                                 "bytes comes next",
                                 frame.index, static_cast<int>(frame.kind), frame.bytes, next, frames, bytes));
  }
  return static_cast<std::uint32_t>(bytes);
}

float* SumTask::arrived(int host, std::uint32_t value) {
  const Progress& from = of(host);
  // A ring: the place of a piece is free once the piece that is kPiecesOfRoom earlier has been added.
  const std::uint32_t place = value / from.partials % kPiecesOfRoom * from.partials + value % from.partials;
  const std::size_t piece_floats = std::min(options_.piece_floats, own().part.end - own().part.begin);
  return room_.arrived[static_cast<std::size_t>(host)].data() + place * piece_floats;
}

void SumTask::take(int host, const Frame& frame) {
  Progress& from = of(host);
  if (frame.kind == FrameKind::sums) {
    ++from.sums_received;
    are_others_finite_ = are_others_finite_ && frame.is_finite;
    return;
  }
  ++from.values_received;
  add_what_has_arrived();
}

void SumTask::add_what_has_arrived() {
  while (added_ < own().pieces && has_arrived(added_)) add(added_++);
}

bool SumTask::has_arrived(std::uint32_t number) const {
  for (int host = 0; host < layout_.hosts(); ++host) {
    if (host == options_.own_host) continue;
    if (of(host).values_received < (number + 1) * of(host).partials) return false;
  }
  return true;
}

// On this thread alone: the threads of the rank would be woken for each piece, and the links are slower than one core.
void SumTask::add(std::uint32_t number) {
  const FloatRange range = piece(own(), number);
  std::vector<const float*> summands;
  for (int host = 0; host < layout_.hosts(); ++host) {
    if (host == options_.own_host) {
      for (const float* leaf : options_.leaves) summands.push_back(leaf + range.begin);
      continue;
    }
    for (std::uint32_t value = 0; value < of(host).partials; ++value) {
      summands.push_back(arrived(host, number * of(host).partials + value));
    }
  }
  const bool is_piece_finite =
      add_in_order(programs_.total, summands, {0, range.end - range.begin}, sum_at(range.begin));
  is_finite_ = is_finite_ && is_piece_finite;
}

bool SumTask::has_received_all(int host) const {
  const Progress& from = of(host);
  return from.sums_received == from.pieces && from.values_received == own().pieces * from.partials;
}

}  // namespace holdfast
