// One thread drives all links: it sends and receives what it can on each in turn, and waits only if nothing moved. So
// no two ranks can wait for each other with full buffers, whatever the order in which their hosts get on.
//
// A rank looks for the end of a link only while it still wants something of it. A peer that has finished the last call
// of a generation closes its links, and others may still be in that call. docs/decisions/hosts.md

#include "collective/hosts/lane.h"

#include <fmt/format.h>
#include <limits>
#include <utility>

#include "collective/communicator.h"
#include "collective/hosts/link_wait.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// How often a rank looks at its links before it sleeps, which is some 10 us. A small sum is there by then, and waking
// up would take a third of its time (docs/measurements.md).
constexpr int kTriesBeforeAWait = 30;

}  // namespace

Lane::Lane(const HostLayout& layout, int rank, std::uint64_t generation, std::vector<std::unique_ptr<Link>> links,
           Cancellation cancellation)
    : layout_(layout), rank_(rank), lane_(layout.local_rank(rank)), cancellation_(std::move(cancellation)) {
  HOLDFAST_ASSERT(lane_ < layout.lanes() && layout.hosts() <= std::numeric_limits<std::uint16_t>::max());
  const int own_host = layout.host_of(rank);
  const FrameOrigin own{.generation = generation, .lane = lane_, .host = own_host};
  links.resize(static_cast<std::size_t>(layout.hosts()));
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == own_host) continue;
    std::unique_ptr<Link>& link = links[static_cast<std::size_t>(host)];
    if (!link) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("rank {} was given no connection to {}, although its host has one of {} lanes", rank,
                              name_of(host), layout.lanes()));
    }
    const FrameOrigin peer{.generation = generation, .lane = lane_, .host = host};
    peers_.push_back({.host = host, .stream = FrameStream(std::move(link), own, peer)});
  }
}

void Lane::run(LaneTask& task, std::uint32_t call, Deadline deadline) {
  // Frames carry the number of the call, so those of another call are refused and not added.
  for (Peer& peer : peers_) peer.stream.begin_call(call);
  for (int tries = 0;; ++tries) {
    check_cancelled();
    bool has_moved = false;
    bool is_complete = true;
    for (Peer& peer : peers_) {
      has_moved = exchange(peer, task) || has_moved;
      is_complete = is_complete && is_done(peer, task);
    }
    if (is_complete) return;
    // Also while bytes arrive: a peer that sends one at a time must not hold this rank beyond its deadline.
    if (deadline.has_passed()) reach_deadline(task);
    if (has_moved) tries = 0;
    if (tries < kTriesBeforeAWait) continue;
    wait(task, deadline);
    tries = 0;
  }
}

// At most one frame in each direction, so that no host has to wait for all frames of another.
bool Lane::exchange(Peer& peer, LaneTask& task) {
  bool has_moved = false;
  try {
    if (!peer.stream.is_sending()) {
      if (std::optional<OutgoingFrame> next = task.next_for(peer.host)) {
        peer.stream.start(next->frame, std::move(next->body));
      }
    }
    if (peer.stream.is_sending()) has_moved = peer.stream.send();
    // A peer may have closed its end after its last frame. So nothing is read that is not needed.
    if (!task.has_received_all(peer.host)) {
      const bool has_received =
          peer.stream.receive([&](const Frame& frame) { return task.place_for(peer.host, frame); },
                              [&](const Frame& frame) { task.take(peer.host, frame); });
      has_moved = has_moved || has_received;
    }
  } catch (const LinkClosed& end) {
    throw GenerationEnded(fmt::format("the generation was ended for rank {}: its connection to {} has ended ({})",
                                      rank_, name_of(peer.host), end.what()));
  } catch (const FrameError& error) {
    throw FrameError(error.fault(),
                     fmt::format("rank {} received a message from {} that it cannot use: {}; all replicas must run the "
                                 "same program with the same options",
                                 rank_, name_of(peer.host), error.what()));
  }
  return has_moved;
}

bool Lane::is_done(const Peer& peer, const LaneTask& task) const {
  return task.has_sent_all(peer.host) && !peer.stream.is_sending() && task.has_received_all(peer.host);
}

void Lane::wait(LaneTask& task, Deadline deadline) const {
  std::vector<LinkInterest> interests;
  for (const Peer& peer : peers_) {
    interests.push_back({.link = &peer.stream.link(),
                         .to_receive = !task.has_received_all(peer.host) && !peer.stream.is_held(),
                         .to_send = peer.stream.is_sending()});
  }
  switch (wait_for_links(interests, cancellation_.event, deadline)) {
    case LinkWait::look_again:
      return;
    case LinkWait::cancelled:
      throw GenerationEnded(fmt::format("the generation was ended while rank {} waited for other hosts", rank_));
    case LinkWait::deadline_passed:
      reach_deadline(task);
  }
}

void Lane::check_cancelled() const {
  if (cancellation_.is_cancelled()) {
    throw GenerationEnded(fmt::format("the generation was ended while rank {} exchanged with other hosts", rank_));
  }
}

std::string Lane::name_of(int host) const {
  return fmt::format("rank {} on host {}", layout_.rank_on_lane(lane_, host), host);
}

// The first peer from which something is missing. The others may be complete, or wait for the same one.
void Lane::reach_deadline(LaneTask& task) const {
  for (const bool receives : {true, false}) {
    for (const Peer& peer : peers_) {
      const bool is_late = receives ? !task.has_received_all(peer.host) : peer.stream.is_sending();
      if (!is_late) continue;
      throw Error(ErrorCode::deadline_exceeded,
                  fmt::format("rank {} reached its deadline while {} {}, which is slow or hangs, or whose host is not "
                              "reached",
                              rank_, receives ? "waiting for" : "sending to", name_of(peer.host)));
    }
  }
  throw Error(ErrorCode::deadline_exceeded, fmt::format("rank {} reached its deadline among other hosts", rank_));
}

void Lane::shut_down() noexcept {
  for (Peer& peer : peers_) peer.stream.link().shut_down();
}

}  // namespace holdfast
