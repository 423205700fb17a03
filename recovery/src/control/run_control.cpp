// The client side. Every step has the caller's deadline: a watchdog that is stopped by a signal still accepts
// connections, but never answers. docs/decisions/live-runs.md

#include "holdfast/recovery/run_control.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "control/control_socket.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// A status of kMaxReplicas processes has about 20 KiB.
constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kConnectRetryPeriod(10);

// The socket is in the shared run directory, where each host sees it, and only that of the head has its listener.
std::string where_to_ask(const std::string& run_directory) {
  std::error_code error;
  if (!std::filesystem::exists(run_directory + "/hosts", error)) return "";
  return "; a run over several hosts answers only on its first host, so ask there";
}

// The two usual causes are named, because a user can tell them apart at once.
Error late(const std::string& run_directory) {
  return Error(
      ErrorCode::deadline_exceeded,
      fmt::format("the watchdog of run {} did not answer in time; is it stopped, or its machine busy?", run_directory));
}

FileDescriptor connect_to(const std::string& run_directory, Deadline deadline) {
  const ControlAddress address(run_directory);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) throw system_error(errno, "cannot make a socket");
  while (::connect(socket.value(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      throw Error(ErrorCode::not_found, fmt::format("no run is live in {} (no process listens on its socket "
                                                    "\"control\"); \"holdfast report {}\" shows how it ended{}",
                                                    run_directory, run_directory, where_to_ask(run_directory)));
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      throw system_error(errno, fmt::format("cannot connect to the watchdog of run {}", run_directory));
    }
    // The kernel does not report when a full queue has room again.
    if (deadline.has_passed()) throw late(run_directory);
    wait_for_descriptor(-1, 0, Deadline::at(std::min(deadline.moment(), Deadline::Clock::now() + kConnectRetryPeriod)));
  }
  return socket;
}

Error gone(const std::string& run_directory) {
  return Error(ErrorCode::input_output,
               fmt::format("the watchdog of run {} closed the connection without an answer; has the run just ended?",
                           run_directory));
}

void send_all(int socket, const std::string& text, const std::string& run_directory, Deadline deadline) {
  // A watchdog that is busy takes a request in parts.
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      if (!wait_for_descriptor(socket, POLLOUT, deadline)) throw late(run_directory);
    } else if (errno != EINTR) {
      throw gone(run_directory);
    }
  }
}

std::string receive_line(int socket, const std::string& run_directory, Deadline deadline) {
  std::string text;
  for (;;) {
    if (!wait_for_descriptor(socket, POLLIN, deadline)) throw late(run_directory);
    char bytes[4096];
    const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) throw gone(run_directory);
    text.append(bytes, static_cast<std::size_t>(count));
    if (const std::size_t end = text.find('\n'); end != std::string::npos) return text.substr(0, end);
    // Another program may listen under this name. It must not fill this process's memory.
    if (text.size() > kMaxAnswerBytes) {
      throw Error(ErrorCode::input_output,
                  fmt::format("the answer of run {} is longer than an answer can be; is this a watchdog of Holdfast?",
                              run_directory));
    }
  }
}

}  // namespace

std::string ask_run(const std::string& run_directory, const std::string& request, Deadline deadline) {
  // The watchdog answers each line, and the second answer would be lost with the connection.
  if (request.find('\n') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "a request to a run must be one line");
  }
  const FileDescriptor socket = connect_to(run_directory, deadline);
  send_all(socket.value(), request + "\n", run_directory, deadline);
  return receive_line(socket.value(), run_directory, deadline);
}

}  // namespace holdfast::recovery
