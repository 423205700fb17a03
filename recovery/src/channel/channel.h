#pragma once

// One end of a connection between watchdog and worker. It carries JSON messages with file descriptors, whole and in
// order. A message that is too long for a packet travels in a memory file, so that only kMaxMessageBytes limits its
// length.

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

struct Message {
  nlohmann::json body{};
  std::vector<FileDescriptor> descriptors{};
};

class Channel {
 public:
  static constexpr std::size_t kMaxMessageBytes = std::size_t{16} * 1024 * 1024;

  static std::pair<Channel, Channel> create();
  explicit Channel(FileDescriptor socket);

  // Blocks while the peer's buffer is full. Any thread. Throws Error{invalid_argument} for a message over the limit,
  // Error{deadline_exceeded} when the peer does not read, Error{unavailable} when it is gone.
  void send(const Message& message, Deadline deadline) const;

  // Never blocks; empty when there is no message. What the peer sent before it closed its end is still received.
  // Throws Error{input_output} for bytes that are not a message. One thread at a time.
  std::optional<Message> try_receive();
  // Blocks until there is something to receive, the peer has closed its end, or the deadline passes.
  void wait_until_readable(Deadline deadline) const;
  bool is_closed() const { return is_closed_; }

  // Ends the connection at both ends, and every wait for it.
  void shut_down() const;

  int descriptor() const { return socket_.value(); }

 private:
  FileDescriptor socket_;
  bool is_closed_ = false;
};

}  // namespace holdfast::recovery
