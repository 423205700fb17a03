// Agents connect, and not replicas: a connection must be ended when a generation is, whatever its processes do, and a
// stranger must never reach one of them. docs/decisions/host-connections.md

#include "links/link_exchange.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "channel/descriptors.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
std::vector<int> ranks_by_host(const std::vector<int>& hosts) {
  std::vector<int> counts;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (rank == 0 || hosts[rank] != hosts[rank - 1]) counts.push_back(0);
    ++counts.back();
  }
  return counts;
}

LinkExchange::LinkExchange(boost::asio::io_context& io, LinkListener& listener, Hosts hosts, Handlers handlers)
    : io_(io), listener_(listener), hosts_(std::move(hosts)), handlers_(std::move(handlers)), order_(hosts_.of_ranks) {
  // The ranks of a host follow one another, so each host is left once.
  order_.erase(std::unique(order_.begin(), order_.end()), order_.end());
  const std::vector<int> counts = ranks_by_host(hosts_.of_ranks);
  lanes_ = *std::min_element(counts.begin(), counts.end());
}

LinkExchange::~LinkExchange() {
  shut_down();
}

void LinkExchange::connect(int exchange) {
  if (is_shut_down_) return;
  Attempt& attempt = attempts_[exchange];
  attempt.links.resize(static_cast<std::size_t>(lanes_));
  for (auto& of_lane : attempt.links) of_lane.resize(order_.size());
  attempt.missing = lanes_ * static_cast<int>(hosts_.peers.size());
  for (const LinkPeer& peer : hosts_.peers) {
    const auto position = static_cast<std::size_t>(std::find(order_.begin(), order_.end(), peer.host) - order_.begin());
    for (std::size_t lane = 0; lane < attempt.links.size(); ++lane) {
      const LinkToken token{
          .key = peer.key, .exchange = static_cast<std::uint32_t>(exchange), .lane = static_cast<std::uint32_t>(lane)};
      const auto take_it = [this, weak = std::weak_ptr<const bool>(is_alive_), exchange, lane,
                            position](FileDescriptor socket) {
        if (!weak.expired()) take(exchange, lane, position, std::move(socket));
      };
      // The host with the higher number dials, so that a lane between two hosts has one connection.
      if (hosts_.host < peer.host) {
        attempt.expected.push_back(token);
        listener_.expect(token, take_it);
        continue;
      }
      attempt.dialers.push_back(std::make_unique<LinkDialer>(
          io_, peer.address, token, hosts_.reach_time,
          LinkDialer::Handlers{.on_link = take_it,
                               .on_given_up = [this, exchange, host = peer.host](const std::string& why) {
                                 fail(exchange, host, why);
                               }}));
    }
  }
}

void LinkExchange::take(int exchange, std::size_t lane, std::size_t position, FileDescriptor socket) {
  const auto found = attempts_.find(exchange);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  // The socket goes to a replica. The duplicate ends the connection whatever that replica does.
  kept_[exchange].push_back(duplicate(socket.value()));
  attempt.links.at(lane).at(position) = std::move(socket);
  if (--attempt.missing > 0) return;
  // All ranks here have asked for this exchange, so they are done with those before it.
  kept_.erase(kept_.begin(), kept_.find(exchange));
  // A dialer that calls this is in it, so it goes with the attempt after the call.
  Attempt complete = std::move(attempts_.extract(found).mapped());
  handlers_.on_links(exchange, std::move(complete.links));
}

void LinkExchange::fail(int exchange, int host, const std::string& why) {
  const auto found = attempts_.find(exchange);
  if (found == attempts_.end()) return;
  const Attempt failed = std::move(attempts_.extract(found).mapped());
  for (const LinkToken& token : failed.expected) listener_.forget(token);
  handlers_.on_failed(exchange, host, why);
}

// All of them, before anything else is done about the end of a generation: a duplicate keeps a connection open whose
// process has died.
void LinkExchange::shut_down() {
  is_shut_down_ = true;
  for (const auto& [exchange, sockets] : kept_) {
    for (const FileDescriptor& socket : sockets) ::shutdown(socket.value(), SHUT_RDWR);
  }
  kept_.clear();
  for (const auto& [exchange, attempt] : attempts_) {
    for (const LinkToken& token : attempt.expected) listener_.forget(token);
  }
  attempts_.clear();
}

}  // namespace holdfast::recovery
