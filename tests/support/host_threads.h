#pragma once

// Ranks of several hosts as threads (rank_threads.h): shared memory for the ranks of a host, sockets between hosts. A
// group does what the agents of the hosts do: it connects, hands out descriptors, keeps duplicates, and cancels.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/hosts/host_layout.h"
#include "collective/hosts/hosts_communicator.h"
#include "collective/hosts/socket_link.h"
#include "holdfast/base/error.h"
#include "support/rank_threads.h"

namespace holdfast {

// The two ends of a connection.
using SocketPair = std::pair<FileDescriptor, FileDescriptor>;

inline int checked(int result) {
  if (result < 0) throw system_error(errno, "a socket of a test failed");
  return result;
}

inline SocketPair unix_pair() {
  int ends[2];
  checked(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// `at_host` is called with 0 and 1 before the sockets of either side are made.
inline SocketPair tcp_pair(
    const std::function<void(int host)>& at_host = [](int) {}, const char* address = "127.0.0.1") {
  at_host(0);
  const FileDescriptor listener(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &at.sin_addr);
  socklen_t size = sizeof at;
  checked(::bind(listener.value(), reinterpret_cast<const sockaddr*>(&at), size));
  checked(::listen(listener.value(), 1));
  checked(::getsockname(listener.value(), reinterpret_cast<sockaddr*>(&at), &size));
  at_host(1);
  FileDescriptor first(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  checked(::connect(first.value(), reinterpret_cast<const sockaddr*>(&at), size));
  FileDescriptor second(checked(::accept4(listener.value(), nullptr, nullptr, SOCK_CLOEXEC)));
  return {std::move(second), std::move(first)};
}

inline FileDescriptor duplicate(const FileDescriptor& descriptor) {
  return FileDescriptor(checked(::fcntl(descriptor.value(), F_DUPFD_CLOEXEC, 0)));
}

class HostGroup {
 public:
  using Connect = std::function<SocketPair()>;
  // Makes another link of the one from `rank` to `host`.
  using Wrap = std::function<std::unique_ptr<Link>(std::unique_ptr<Link>, int rank, int host)>;

  explicit HostGroup(HostLayout layout, Connect connect = unix_pair)
      : layout_(std::move(layout)),
        connect_(std::move(connect)),
        cancel_event_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))),
        made_(static_cast<std::size_t>(layout_.ranks())) {
    for (int host = 0; host < layout_.hosts(); ++host) memories_.emplace_back(layout_.ranks_of(host));
  }

  const HostLayout& layout() const { return layout_; }
  void wrap_links(Wrap wrap) { wrap_ = std::move(wrap); }
  void set_piece_floats(std::size_t floats) { piece_floats_ = floats; }

  // Makes the n-th communicator of every rank. Thread-safe.
  std::unique_ptr<HostsCommunicator> connect(const CommunicatorShape& shape) {
    const int host = layout_.host_of(shape.rank);
    CommunicatorShape local = shape;
    local.rank = layout_.local_rank(shape.rank);
    local.size = layout_.ranks_of(host);
    HostConnections connections{.layout = layout_,
                                .generation = 7,
                                .memory = memories_[static_cast<std::size_t>(host)].memory_for(local),
                                .links = {},
                                .cancel_event = duplicate(cancel_event_)};
    std::vector<FileDescriptor> sockets = sockets_of(shape.rank);
    for (int peer = 0; peer < layout_.hosts(); ++peer) {
      FileDescriptor& socket = sockets[static_cast<std::size_t>(peer)];
      std::unique_ptr<Link> link;
      if (socket.is_open()) link = std::make_unique<SocketLink>(std::move(socket));
      if (link && wrap_) link = wrap_(std::move(link), shape.rank, peer);
      connections.links.push_back(std::move(link));
    }
    return std::make_unique<HostsCommunicator>(shape, std::move(connections), piece_floats_);
  }

  // The sockets of the rank for its next communicator, by host.
  std::vector<FileDescriptor> sockets_of(int rank) {
    const std::lock_guard lock(mutex_);
    const std::size_t number = made_[static_cast<std::size_t>(rank)]++;
    std::vector<FileDescriptor> sockets(static_cast<std::size_t>(layout_.hosts()));
    const int lane = layout_.local_rank(rank);
    const int own = layout_.host_of(rank);
    for (int peer = 0; lane < layout_.lanes() && peer < layout_.hosts(); ++peer) {
      if (peer == own) continue;
      const auto [entry, is_new] =
          sockets_.try_emplace({number, lane, std::min(own, peer), std::max(own, peer)}, SocketPair{});
      SocketPair& pair = entry->second;
      if (is_new) {
        pair = connect_();
        kept_.push_back(duplicate(pair.first));
        kept_.push_back(duplicate(pair.second));
      }
      sockets[static_cast<std::size_t>(peer)] = std::move(own < peer ? pair.first : pair.second);
    }
    return sockets;
  }

  // Three ways in which a generation ends, each of which is enough. An agent uses the first and the last.
  void cancel_words() {
    for (ThreadGroup& memory : memories_) memory.cancel_all();
  }
  void set_cancel_event() { static_cast<void>(::eventfd_write(cancel_event_.value(), 1)); }
  void shut_down_sockets() {
    const std::lock_guard lock(mutex_);
    for (const FileDescriptor& socket : kept_) ::shutdown(socket.value(), SHUT_RDWR);
  }
  void cancel_all() {
    cancel_words();
    set_cancel_event();
    shut_down_sockets();
  }

 private:
  const HostLayout layout_;
  const Connect connect_;
  const FileDescriptor cancel_event_;
  Wrap wrap_;
  std::size_t piece_floats_ = HostsCommunicator::kPieceFloats;
  std::mutex mutex_;
  std::vector<std::size_t> made_;                                         // by rank
  std::deque<ThreadGroup> memories_;                                      // by host
  std::map<std::tuple<std::size_t, int, int, int>, SocketPair> sockets_;  // by number, lane and the two hosts
  std::vector<FileDescriptor> kept_;
};

// Runs body(rank) in one thread for each rank, and returns what each threw. A rank that throws cancels nobody: the
// communicator has to.
inline std::vector<std::exception_ptr> run_each_rank(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

// The same where no rank may throw.
inline void run_host_ranks(HostGroup& group, const std::function<void(int rank)>& body) {
  for (const std::exception_ptr& thrown : run_each_rank(group.layout().ranks(), body)) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

}  // namespace holdfast
