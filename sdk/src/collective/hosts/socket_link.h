#pragma once

// A link over a connected stream socket. The socket is made elsewhere: agents of the hosts connect, check who is there,
// and hand the descriptor to the replica. They keep a duplicate, and cancel all waits of both sides by shutting it
// down.

#include <chrono>

#include "collective/hosts/link.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {

struct SocketLinkOptions {
  // How long the kernel lets data stay unacknowledged before it ends the connection. Without this it tries for 15
  // minutes. It is a second net: beats of the agents find a lost host earlier. Zero leaves the kernel's own limit.
  std::chrono::milliseconds unacknowledged_limit = std::chrono::seconds(10);
};

class SocketLink final : public Link {
 public:
  // Throws Error{invalid_argument} if the descriptor is not a connected stream socket.
  explicit SocketLink(FileDescriptor socket, const SocketLinkOptions& options = {});
  ~SocketLink() override;
  SocketLink(const SocketLink&) = delete;
  SocketLink& operator=(const SocketLink&) = delete;

  std::size_t send(std::span<const std::span<const std::byte>> parts) override;
  std::size_t receive(std::span<std::byte> bytes) override;
  int descriptor() const override { return socket_.value(); }
  void shut_down() noexcept override;

 private:
  const FileDescriptor socket_;
};

}  // namespace holdfast
