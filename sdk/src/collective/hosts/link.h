#pragma once

// One connection between two ranks on different hosts: bytes in order, in both directions at once. Nothing here waits.
// wait_for_links() waits for several links, with a deadline and a way to cancel (link_wait.h).
//
// SocketLink is the one kind. Another transport, or a link that fails on purpose, implements the same four functions.
// See docs/decisions/hosts.md.

#include <cstddef>
#include <span>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// The connection has ended: the peer's process is gone, its host is not reached, or the generation was ended. The rank
// that finds this is in order, so its communicator throws GenerationEnded.
class LinkClosed : public Error {
 public:
  explicit LinkClosed(const std::string& sentence) : Error(ErrorCode::input_output, sentence) {}
};

class Link {
 public:
  virtual ~Link() = default;

  // Both move what can be moved at once and return how many bytes that is; 0 if the link is not ready. They throw
  // LinkClosed, or Error of the system. `parts` are sent one after another, as many of them as fit.
  virtual std::size_t send(std::span<const std::span<const std::byte>> parts) = 0;
  virtual std::size_t receive(std::span<std::byte> bytes) = 0;

  // What poll() watches: it is readable when receive() moves something or throws, and writable when send() does.
  virtual int descriptor() const = 0;

  // Ends both directions for good, on both sides. Waits for this link end. Any thread, as long as the link exists.
  virtual void shut_down() noexcept = 0;
};

}  // namespace holdfast
