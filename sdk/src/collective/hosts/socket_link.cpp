// send() and recv() on sockets, each time with a flag that it must not wait. The flag is of the call, not of the
// socket: an agent that keeps a duplicate may use it as it likes. docs/decisions/hosts.md says why this is neither
// Boost.Asio nor Gloo.

#include "collective/hosts/socket_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast {
namespace {

int option_of(int socket, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

void set_tcp_option(int socket, int name, int value) {
  if (::setsockopt(socket, IPPROTO_TCP, name, &value, sizeof value) != 0) {
    throw system_error(errno, fmt::format("option {} of a connection between hosts cannot be set to {}", name, value));
  }
}

bool is_connected(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

// What the system says of a connection that has ended. All else is a fault of this process or of its machine.
bool is_an_end(int error_number) {
  constexpr std::array kEnds = {ECONNRESET, EPIPE,     ETIMEDOUT,    ECONNABORTED, ENOTCONN,
                                EHOSTDOWN,  ENETRESET, EHOSTUNREACH, ENETUNREACH,  ENETDOWN};
  return std::find(kEnds.begin(), kEnds.end(), error_number) != kEnds.end();
}

[[noreturn]] void end_link(int error_number, const char* what) {
  if (is_an_end(error_number)) throw LinkClosed(std::generic_category().message(error_number));
  throw system_error(error_number, fmt::format("a connection between hosts failed while {}", what));
}

// More pieces of one message are rare, and the rest goes with the next call.
constexpr std::size_t kMostParts = 16;

}  // namespace

SocketLink::SocketLink(FileDescriptor socket, const SocketLinkOptions& options) : socket_(std::move(socket)) {
  // Before anything is set, so that a sentence says what is wrong.
  if (option_of(socket_.value(), SO_TYPE) != SOCK_STREAM || !is_connected(socket_.value())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("descriptor {} is not a connected stream socket, so ranks of two hosts cannot exchange "
                            "gradients over it",
                            socket_.value()));
  }
  if (option_of(socket_.value(), SO_PROTOCOL) != IPPROTO_TCP) return;
  // A small message would otherwise wait for the acknowledgement of the last one.
  set_tcp_option(socket_.value(), TCP_NODELAY, 1);
  if (options.unacknowledged_limit.count() > 0) {
    set_tcp_option(socket_.value(), TCP_USER_TIMEOUT, static_cast<int>(options.unacknowledged_limit.count()));
  }
}

// A duplicate would keep the connection open, and the peer would see nothing.
SocketLink::~SocketLink() {
  shut_down();
}

std::size_t SocketLink::send(std::span<const std::span<const std::byte>> parts) {
  std::array<iovec, kMostParts> vectors{};
  const std::size_t count = std::min(parts.size(), kMostParts);
  for (std::size_t i = 0; i < count; ++i) {
    vectors[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()), .iov_len = parts[i].size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  for (;;) {
    // Without MSG_NOSIGNAL a peer that has gone would end this process by SIGPIPE.
    const ssize_t sent = ::sendmsg(socket_.value(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) end_link(errno, "sending");
  }
}

std::size_t SocketLink::receive(std::span<std::byte> bytes) {
  HOLDFAST_ASSERT(!bytes.empty());
  for (;;) {
    const ssize_t received = ::recv(socket_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received > 0) return static_cast<std::size_t>(received);
    if (received == 0) throw LinkClosed("the other side closed it");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) end_link(errno, "receiving");
  }
}

void SocketLink::shut_down() noexcept {
  ::shutdown(socket_.value(), SHUT_RDWR);
}

}  // namespace holdfast
