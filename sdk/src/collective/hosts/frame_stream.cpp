// A frame may be cut anywhere: sockets take and give any number of bytes. So both directions remember how far they are,
// in the header as in the body.

#include "collective/hosts/frame_stream.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

template <class Body>
std::size_t bytes_in(const Body& body) {
  std::size_t bytes = 0;
  for (const auto& part : body) bytes += part.size();
  return bytes;
}

}  // namespace

void FrameStream::begin_call(std::uint32_t call) {
  // A header that has arrived in part is compared with peer_ later, so the call may only change between frames.
  HOLDFAST_ASSERT(!is_sending() && header_received_ == 0);
  own_.call = call;
  peer_.call = call;
}

void FrameStream::start(Frame frame, ConstFrameBody body) {
  HOLDFAST_ASSERT(!is_sending());
  out_bytes_ = bytes_in(body);
  HOLDFAST_ASSERT(out_bytes_ == frame.bytes);
  out_header_ = to_header(own_, frame);
  out_body_ = std::move(body);
  sent_ = 0;
}

bool FrameStream::send() {
  // Header and body go to the link together, so a small frame takes one system call.
  ConstFrameBody rest;
  std::size_t skipped = 0;
  const auto add = [&](std::span<const std::byte> part) {
    const std::size_t done = std::min(part.size(), sent_ - std::min(sent_, skipped));
    if (done < part.size()) rest.push_back(part.subspan(done));
    skipped += part.size();
  };
  add(out_header_);
  for (const std::span<const std::byte> part : out_body_) add(part);
  const std::size_t sent = link_->send(rest);
  sent_ += sent;
  return sent > 0;
}

bool FrameStream::receive(const PlaceOfFrame& place, const Take& take) {
  bool has_moved = false;
  if (header_received_ < kFrameHeaderBytes) {
    has_moved = receive_header();
    if (header_received_ < kFrameHeaderBytes) return has_moved;
    // Throws for another frame before any place is asked for, so nothing of a wrong peer gets into an array.
    in_frame_ = from_header(in_header_, peer_);
  }
  if (!in_body_) {
    in_body_ = place(in_frame_);
    is_held_ = !in_body_;
    // The header stays, and the next call asks for a place again.
    if (is_held_) return has_moved;
    HOLDFAST_ASSERT(bytes_in(*in_body_) == in_frame_.bytes);
  }
  // A body of 0 bytes is whole at once.
  has_moved = receive_body() || has_moved;
  if (bytes_in(*in_body_) > 0) return has_moved;
  in_body_.reset();
  header_received_ = 0;
  take(in_frame_);
  return true;
}

bool FrameStream::receive_header() {
  const std::size_t received = link_->receive(std::span(in_header_).subspan(header_received_));
  header_received_ += received;
  return received > 0;
}

bool FrameStream::receive_body() {
  bool has_moved = false;
  for (std::span<std::byte>& part : *in_body_) {
    if (part.empty()) continue;
    const std::size_t received = link_->receive(part);
    part = part.subspan(received);
    has_moved = has_moved || received > 0;
    // Bytes that arrive meanwhile belong here, and not to the next part.
    if (!part.empty()) break;
  }
  return has_moved;
}

}  // namespace holdfast
