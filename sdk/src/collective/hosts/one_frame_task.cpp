#include "collective/hosts/one_frame_task.h"

#include <fmt/format.h>
#include <limits>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

template <class Body>
std::uint32_t frame_bytes_of(const Body& body) {
  std::size_t bytes = 0;
  for (const auto& part : body) bytes += part.size();
  HOLDFAST_ASSERT(bytes <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

std::optional<OutgoingFrame> OneFrameTask::next_for(int host) {
  std::optional<ConstFrameBody>& body = out_[static_cast<std::size_t>(host)];
  if (!body) return std::nullopt;
  OutgoingFrame next{.frame = {.kind = kind_, .index = index_, .bytes = frame_bytes_of(*body)},
                     .body = std::move(*body)};
  body.reset();
  return next;
}

std::optional<FrameBody> OneFrameTask::place_for(int host, const Frame& frame) {
  const FrameBody& body = *in_[static_cast<std::size_t>(host)];
  const std::uint32_t bytes = frame_bytes_of(body);
  if (frame.kind != kind_ || frame.index != index_ || frame.bytes != bytes) {
    throw FrameError(
        FrameFault::other_content,
        fmt::format("it is message {} of kind {} with {} bytes, and message {} of kind {} with {} bytes "
                    "comes next",
                    frame.index, static_cast<int>(frame.kind), frame.bytes, index_, static_cast<int>(kind_), bytes));
  }
  return body;
}

void OneFrameTask::take(int host, const Frame& /*frame*/) {
  in_[static_cast<std::size_t>(host)].reset();
}

}  // namespace holdfast
