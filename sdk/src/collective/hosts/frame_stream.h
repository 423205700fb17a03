#pragma once

// Frames over one link, as many bytes at a time as the link takes and has. Nothing here waits.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collective/hosts/frame.h"
#include "collective/hosts/link.h"

namespace holdfast {

// A body in pieces of memory, one after another.
using FrameBody = std::vector<std::span<std::byte>>;
using ConstFrameBody = std::vector<std::span<const std::byte>>;

class FrameStream {
 public:
  // `own` and `peer` say whose frames go in either direction. Their call is set for each call.
  FrameStream(std::unique_ptr<Link> link, const FrameOrigin& own, const FrameOrigin& peer)
      : link_(std::move(link)), own_(own), peer_(peer) {}

  const Link& link() const { return *link_; }
  Link& link() { return *link_; }

  // Begins a collective call. Asserts that the last one left nothing unfinished.
  void begin_call(std::uint32_t call);

  // Whether a frame is on its way that is not sent as a whole.
  bool is_sending() const { return sent_ < kFrameHeaderBytes + out_bytes_; }
  // Begins to send a frame, whose body must stay as it is until it is sent. Asserts that none is on its way.
  void start(Frame frame, ConstFrameBody body);
  // Sends what the link takes. Returns whether that was anything.
  bool send();

  // Says where the body of the frame goes that comes next: memory of frame.bytes altogether, or nothing if there is no
  // room for it yet. Throws FrameError if this is not the frame that is expected.
  using PlaceOfFrame = std::function<std::optional<FrameBody>(const Frame& frame)>;
  // Called with each frame that has arrived as a whole.
  using Take = std::function<void(const Frame& frame)>;
  // Receives what the link has, up to the end of the frame. Returns whether that was anything.
  bool receive(const PlaceOfFrame& place, const Take& take);
  // Whether the next frame waits for room. Its peer is stopped by the link, which fills.
  bool is_held() const { return is_held_; }

 private:
  bool receive_header();
  bool receive_body();

  std::unique_ptr<Link> link_;
  FrameOrigin own_;
  FrameOrigin peer_;

  FrameHeader out_header_{};
  ConstFrameBody out_body_;
  std::size_t out_bytes_ = 0;
  std::size_t sent_ = kFrameHeaderBytes;  // of header and body

  FrameHeader in_header_{};
  std::size_t header_received_ = 0;
  Frame in_frame_;
  std::optional<FrameBody> in_body_;  // what is still to be filled
  bool is_held_ = false;
};

}  // namespace holdfast
