#pragma once

// What tests of connections between hosts do with their sockets.

#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// What is sent at one end arrives at the other.
inline bool are_connected(const FileDescriptor& one, const FileDescriptor& other) {
  const char sent = 'x';
  char received = 0;
  if (::send(one.value(), &sent, 1, MSG_NOSIGNAL) != 1) return false;
  timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(other.value(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  // Sockets of Asio do not wait.
  while (::recv(other.value(), &received, 1, 0) != 1) {
    if (errno != EAGAIN && errno != EINTR) return false;
  }
  return received == sent;
}

// The other side has ended the connection, or this one has.
inline bool has_ended(const FileDescriptor& socket) {
  char received = 0;
  const ssize_t bytes = ::recv(socket.value(), &received, 1, MSG_DONTWAIT);
  return bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace holdfast::recovery
