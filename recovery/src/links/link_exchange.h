#pragma once

// The connections between the hosts of one generation. With each exchange of arenas every lane gets new ones: local
// rank i of this host is connected with local rank i of each other host, for as many i as the host with the fewest
// ranks has. The host with the higher number dials the other.
//
// Duplicates of all of them stay here, by which the generation is ended on both sides. docs/decisions/hosts.md

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "links/link_dialer.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>

#include "holdfast/base/shared_memory.h"
#include "links/link_listener.h"
#include "links/link_peer.h"

namespace holdfast::recovery {

// For the thread that runs the io_context.
class LinkExchange {
 public:
  // The connections of one exchange: of each lane, by host in the order of the ranks. That of this host is not open.
  using Links = std::vector<std::vector<FileDescriptor>>;
  struct Handlers {
    // All connections of the exchange are there.
    std::function<void(int exchange, Links links)> on_links{};
    // They will never be: a host is not reached.
    std::function<void(int exchange, int host, const std::string& why)> on_failed{};
  };

  // Who is where, in a generation over several hosts.
  struct Hosts {
    int host = 0;                   // the number of this one
    std::vector<int> of_ranks{};    // the host of each rank; the ranks of a host follow one another
    std::vector<LinkPeer> peers{};  // the other hosts
    // For another host to be reached, while it is not. Longer than the head takes to give up a host that reaches nobody
    // (HostTimes::host), so that such a one is not taken for one that reaches the head.
    std::chrono::milliseconds reach_time = std::chrono::seconds(10);
  };

  // `io` and `listener`, that of this host, outlive the exchange.
  LinkExchange(boost::asio::io_context& io, LinkListener& listener, Hosts hosts, Handlers handlers);
  // As shut_down().
  ~LinkExchange();
  LinkExchange(const LinkExchange&) = delete;
  LinkExchange& operator=(const LinkExchange&) = delete;

  // Makes the connections of an exchange, unless they are shut down.
  void connect(int exchange);
  // Ends all connections, on both sides, and every attempt to make one. No handler is called any more.
  void shut_down();

  int lanes() const { return lanes_; }

 private:
  // An exchange whose connections are being made.
  struct Attempt {
    Links links{};
    int missing = 0;
    std::vector<LinkToken> expected{};
    std::vector<std::unique_ptr<LinkDialer>> dialers{};
  };

  void take(int exchange, std::size_t lane, std::size_t position, FileDescriptor socket);
  void fail(int exchange, int host, const std::string& why);

  boost::asio::io_context& io_;
  LinkListener& listener_;
  const Hosts hosts_;
  const Handlers handlers_;
  std::vector<int> order_;  // the hosts in the order of their ranks
  int lanes_ = 0;
  bool is_shut_down_ = false;
  std::map<int, Attempt> attempts_;                  // by exchange
  std::map<int, std::vector<FileDescriptor>> kept_;  // duplicates, by exchange
  const std::shared_ptr<const bool> is_alive_ = std::make_shared<const bool>(true);
};

// How many ranks each host of a generation has, in the order of the ranks.
std::vector<int> ranks_by_host(const std::vector<int>& hosts);

}  // namespace holdfast::recovery
