#include "channel/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

int poll_timeout(Deadline deadline) {
  // Rounded up. Otherwise the last millisecond would be spent in a busy loop.
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
  // poll(2) takes an int, and a deadline may be further away than that. The caller then waits in several calls.
  return static_cast<int>(std::min<std::chrono::milliseconds::rep>(milliseconds, std::numeric_limits<int>::max()));
}

}  // namespace

// A signal ends poll(2) early, so the rest of the time is waited for anew.
bool wait_for_descriptor(int descriptor, short events, Deadline deadline) {
  pollfd wanted{.fd = descriptor, .events = events, .revents = 0};
  while (true) {
    const int ready = ::poll(&wanted, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw system_error(errno, "cannot wait for a file descriptor");
    // Asked after the call, so that what is there already is found even if the deadline has passed.
    if (deadline.has_passed()) return false;
  }
}

std::pair<FileDescriptor, FileDescriptor> connected_sockets(const char* what) {
  // SOCK_SEQPACKET keeps packets whole and shows the end of the peer. A pair of datagram sockets would not show it.
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw system_error(errno, fmt::format("cannot create {}", what));
  }
  // In a program that has closed its standard streams, these may have the numbers 0 to 2.
  const FileDescriptor own(ends[0]);
  const FileDescriptor other(ends[1]);
  return {duplicate(own.value()), duplicate(other.value())};
}

FileDescriptor duplicate(int descriptor) {
  // Never 0, 1 or 2, which are the standard streams of a process that is started.
  FileDescriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  if (!copy.is_open()) throw system_error(errno, "cannot duplicate a file descriptor");
  return copy;
}

}  // namespace holdfast::recovery
