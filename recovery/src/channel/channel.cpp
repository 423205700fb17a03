// A packet must fit into the socket's buffer, so a long text travels in a memory file whose descriptor the packet
// carries. Everything from the peer is checked: a broken replica must not break the watchdog.
// docs/decisions/recovery.md

#include "channel/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// Linux grants a socket a buffer of about 200 KiB by default.
constexpr std::size_t kMaxTextInPacket = std::size_t{32} * 1024;
// SCM_MAX_FD of the kernel.
constexpr std::size_t kMaxDescriptors = 253;

struct PacketHeader {
  std::uint64_t text_bytes = 0;
  std::uint64_t is_in_memory = 0;  // 1: the text is the content of the first descriptor
};

std::string to_text(const nlohmann::json& body) {
  // A report of a worker may quote bytes that are not UTF-8. The report must not fail for that.
  std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > Channel::kMaxMessageBytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot send a message of {} bytes to a process; at most {} are allowed", text.size(),
                            Channel::kMaxMessageBytes));
  }
  return text;
}

// Nobody has to remove the memory. It is gone with its last descriptor and mapping.
SharedMemory in_memory(const std::string& text) {
  SharedMemory memory = SharedMemory::create("holdfast-message", text.size());
  std::memcpy(memory.writable().data(), text.data(), text.size());
  return memory;
}

// One packet for sendmsg or recvmsg: the header, the text and room for descriptors. Both calls take pointers, so all
// that they point to lies in one object that does not move.
class Packet {
 public:
  Packet(PacketHeader& header, std::span<char> text) {
    parts_[0] = {.iov_base = &header, .iov_len = sizeof header};
    parts_[1] = {.iov_base = text.data(), .iov_len = text.size()};
    message_.msg_iov = parts_.data();
    message_.msg_iovlen = parts_.size();
  }
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;

  void attach(const std::vector<int>& descriptors) {
    if (descriptors.empty()) return;
    message_.msg_control = control_.data();
    // Only the part that is filled. The kernel reads as many control messages as this length has room for.
    message_.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message_);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }

  void make_room_for_descriptors() {
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
  }

  // Taken before anything is checked. Otherwise the descriptors of a wrong packet would stay open.
  std::vector<FileDescriptor> take_descriptors() {
    std::vector<FileDescriptor> descriptors;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message_); header != nullptr; header = CMSG_NXTHDR(&message_, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int value = -1;
        std::memcpy(&value, CMSG_DATA(header) + i * sizeof(int), sizeof value);
        descriptors.emplace_back(value);
      }
    }
    return descriptors;
  }

  bool is_truncated() const { return (message_.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0; }
  msghdr* message() { return &message_; }

 private:
  std::array<iovec, 2> parts_{};
  msghdr message_{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control_{};
};

// Tried before it is waited for, because a buffer has room nearly always.
void send_packet(int socket, Packet& packet, Deadline deadline) {
  // Without MSG_NOSIGNAL a peer that is gone would be SIGPIPE, which ends this process.
  while (::sendmsg(socket, packet.message(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EPIPE || errno == ECONNRESET) {
      throw Error(ErrorCode::unavailable, "the process at the other end of a channel is gone");
    }
    if (errno != EAGAIN && errno != EINTR) throw system_error(errno, "cannot send a message to a process");
    if (deadline.has_passed()) {
      throw Error(ErrorCode::deadline_exceeded, "the process at the other end of a channel does not read its messages");
    }
    if (errno == EAGAIN) wait_for_descriptor(socket, POLLOUT, deadline);
  }
}

nlohmann::json parse(std::span<const char> text) {
  nlohmann::json body = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!body.is_object()) {
    throw Error(ErrorCode::input_output,
                fmt::format("a process sent a packet of {} bytes that is not a message", text.size()));
  }
  return body;
}

// The sender gives the size. Without a limit it could make this process map any amount of memory.
nlohmann::json parse_in_memory(std::vector<FileDescriptor>& descriptors, std::size_t text_bytes) {
  if (descriptors.empty() || text_bytes > Channel::kMaxMessageBytes) {
    throw Error(ErrorCode::input_output,
                fmt::format("a process sent a message of {} bytes without its text", text_bytes));
  }
  const SharedMemory memory = SharedMemory::map_read_only(std::move(descriptors.front()), text_bytes);
  descriptors.erase(descriptors.begin());
  return parse({reinterpret_cast<const char*>(memory.readable().data()), text_bytes});
}

}  // namespace

std::pair<Channel, Channel> Channel::create() {
  auto [own, other] = connected_sockets("a channel between processes");
  return {Channel(std::move(own)), Channel(std::move(other))};
}

Channel::Channel(FileDescriptor socket) : socket_(std::move(socket)) {}

void Channel::send(const Message& message, Deadline deadline) const {
  std::string text = to_text(message.body);
  PacketHeader header{.text_bytes = text.size(), .is_in_memory = text.size() > kMaxTextInPacket ? 1U : 0U};
  SharedMemory memory;
  std::vector<int> descriptors;
  if (header.is_in_memory != 0) {
    memory = in_memory(text);
    descriptors.push_back(memory.descriptor());
    text.clear();
  }
  for (const FileDescriptor& descriptor : message.descriptors) descriptors.push_back(descriptor.value());
  // ArenaExchange sends two for each of kMaxReplicas, which is about half of the limit.
  HOLDFAST_ASSERT(descriptors.size() <= kMaxDescriptors);
  Packet packet(header, text);
  packet.attach(descriptors);
  send_packet(socket_.value(), packet, deadline);
}

std::optional<Message> Channel::try_receive() {
  if (is_closed_) return std::nullopt;
  PacketHeader header;
  std::vector<char> text(kMaxTextInPacket);
  Packet packet(header, text);
  packet.make_room_for_descriptors();
  // Closed at exec, so that a program that is started meanwhile inherits no descriptor.
  constexpr int kFlags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
  const ssize_t bytes = TEMP_FAILURE_RETRY(::recvmsg(socket_.value(), packet.message(), kFlags));
  if (bytes < 0 && errno == EAGAIN) return std::nullopt;
  if (bytes < 0 && errno != ECONNRESET) throw system_error(errno, "cannot receive a message from a process");
  // An orderly end and a reset are the same here: no further message comes.
  if (bytes <= 0) {
    is_closed_ = true;
    return std::nullopt;
  }
  Message message{.body = {}, .descriptors = packet.take_descriptors()};
  const std::size_t inline_bytes = header.is_in_memory != 0 ? 0 : header.text_bytes;
  // Compared without a sum: text_bytes is the sender's, and a large one would wrap around to a short packet's length.
  const bool has_header = static_cast<std::size_t>(bytes) >= sizeof header;
  if (packet.is_truncated() || !has_header || static_cast<std::size_t>(bytes) - sizeof header != inline_bytes) {
    throw Error(ErrorCode::input_output,
                fmt::format("a process sent a packet of {} bytes that is not a whole message", bytes));
  }
  message.body = header.is_in_memory != 0 ? parse_in_memory(message.descriptors, header.text_bytes)
                                          : parse(std::span<const char>(text).first(inline_bytes));
  return message;
}

void Channel::wait_until_readable(Deadline deadline) const {
  wait_for_descriptor(socket_.value(), POLLIN, deadline);
}

// Closing the descriptor would not end the connection while another process has a copy of it.
void Channel::shut_down() const {
  ::shutdown(socket_.value(), SHUT_RDWR);
}

}  // namespace holdfast::recovery
