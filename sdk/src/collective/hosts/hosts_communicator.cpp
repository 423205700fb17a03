// Each call is the shared-memory call of a host, cut in two by an exchange between hosts. The barriers within the host
// are those of MemoryCommunicator: before the exchange all ranks have written, and after it all may read.
//
// No call returns on any rank before all ranks have begun it, except a broadcast on ranks that take nothing. A sum
// depends on values of every host, and a host sends values only when all of its ranks are there.
// See docs/decisions/hosts.md.

#include "collective/hosts/hosts_communicator.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/hosts/one_frame_task.h"
#include "collective/memory/parts_cursor.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

const HostLayout& require_fitting(const HostLayout& layout, const CommunicatorShape& shape) {
  if (layout.ranks() != shape.size || shape.rank < 0 || shape.rank >= shape.size) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("hosts with {} ranks altogether were described to rank {} of a generation of {}",
                            layout.ranks(), shape.rank, shape.size));
  }
  return layout;
}

ConstFrameBody read_only(const FrameBody& body) {
  return {body.begin(), body.end()};
}

}  // namespace

HostsCommunicator::HostsCommunicator(const CommunicatorShape& shape, HostConnections connections,
                                     std::size_t piece_floats)
    : layout_(require_fitting(connections.layout, shape)),
      rank_(shape.rank),
      host_(layout_.host_of(rank_)),
      local_rank_(layout_.local_rank(rank_)),
      piece_floats_(piece_floats),
      sums_(shape.assignment, layout_, host_),
      cancel_event_(std::move(connections.cancel_event)),
      shared_(shape, {.first = layout_.first_rank(host_), .count = layout_.ranks_of(host_)},
              std::move(connections.memory)) {
  // There are as many lanes as the host with the fewest ranks has. Further ranks have no connections.
  if (local_rank_ >= layout_.lanes()) return;
  lane_.emplace(
      layout_, rank_, connections.generation, std::move(connections.links),
      Lane::Cancellation{.event = cancel_event_.value(), .is_cancelled = [this] { return shared_.is_cancelled(); }});
}

// Peers that wait for this rank must learn that it is gone from this generation. An agent tells them too, but it has to
// notice first.
void HostsCommunicator::call(const std::function<void()>& body) {
  ++call_;
  try {
    body();
  } catch (...) {
    cancel();
    throw;
  }
}

void HostsCommunicator::cancel() noexcept {
  shared_.cancel();
  if (lane_) lane_->shut_down();
}

Sums HostsCommunicator::reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) {
  HOLDFAST_ASSERT(range.begin <= range.end && range.end <= shared_.result().size());
  was_finite_ = true;
  call([&] {
    // Also a sum of nothing returns on no rank before all have begun it.
    if (range.begin == range.end) return synchronize(deadline);
    shared_.show_covering_slots(covering_slots);
    shared_.barrier(deadline);
    add_over_hosts(range, deadline);
    // After this barrier no rank of the host reads slots any more, so training may write them.
    shared_.barrier(deadline);
    // The sums lie in the segments of the ranks with lanes, one part each.
    if (shared_.ranks() > 1) shared_.gather(range, layout_.lanes(), passes_);
    was_finite_ = shared_.are_finite(layout_.lanes());
  });
  return shared_.parted(shared_.result());
}

void HostsCommunicator::add_over_hosts(FloatRange range, Deadline deadline) {
  if (!lane_) return;
  const FloatRange part = segment_of(local_rank_, layout_.lanes(), range);
  // A rank that is alone on its host has nobody to show its segment to.
  float* const sums = shared_.ranks() == 1 ? shared_.result().data() + part.begin : shared_.own_segment();
  SumTask task(
      layout_, sums_, room_,
      {.own_host = host_, .range = part, .piece_floats = piece_floats_, .leaves = shared_.leaves(), .sums = sums});
  lane_->run(task, call_, deadline);
  shared_.show_finite(task.is_finite());
}

void HostsCommunicator::barrier(Deadline deadline) {
  call([&] { synchronize(deadline); });
}

void HostsCommunicator::synchronize(Deadline deadline) {
  shared_.barrier(deadline);
  if (local_rank_ == 0) {
    OneFrameTask task(layout_.hosts(), FrameKind::small);
    for (int host = 0; host < layout_.hosts(); ++host) {
      if (host == host_) continue;
      task.send_to(host, {});
      task.receive_from(host, {});
    }
    lane_->run(task, call_, deadline);
  }
  shared_.barrier(deadline);
}

void HostsCommunicator::gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) {
  call([&] { gather(own, all, deadline); });
}

void HostsCommunicator::gather(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) {
  HOLDFAST_ASSERT(all.size() == own.size() * static_cast<std::size_t>(size()) && own.size() <= shared_.slots_bytes());
  std::memcpy(shared_.own_bytes().data(), own.data(), own.size());
  shared_.barrier(deadline);
  std::vector<std::byte> gathered(all.size());
  if (local_rank_ == 0) {
    gathered = gather_hosts(own.size(), deadline);
    // Known from here on, whatever becomes of the generation. Nothing is written before all is known.
    std::memcpy(all.data(), gathered.data(), all.size());
  }
  share_gathered(gathered, all, deadline);
}

// On lane 0: takes what the ranks of the host show, and exchanges it with the other hosts.
std::vector<std::byte> HostsCommunicator::gather_hosts(std::size_t own_bytes, Deadline deadline) {
  std::vector<std::byte> gathered(own_bytes * static_cast<std::size_t>(size()));
  const auto of_host = [&](int host) {
    return std::span(gathered).subspan(static_cast<std::size_t>(layout_.first_rank(host)) * own_bytes,
                                       static_cast<std::size_t>(layout_.ranks_of(host)) * own_bytes);
  };
  for (int local = 0; local < shared_.ranks(); ++local) {
    std::memcpy(of_host(host_).data() + static_cast<std::size_t>(local) * own_bytes, shared_.bytes(local).data(),
                own_bytes);
  }
  OneFrameTask task(layout_.hosts(), FrameKind::small);
  for (int host = 0; host < layout_.hosts(); ++host) {
    if (host == host_) continue;
    task.send_to(host, {of_host(host_)});
    task.receive_from(host, {of_host(host)});
  }
  lane_->run(task, call_, deadline);
  return gathered;
}

// From the rank on lane 0 to the others of its host. A rank that is cut off still takes what is there: it may be the
// only one of its host that survives.
void HostsCommunicator::share_gathered(const std::vector<std::byte>& gathered, std::span<std::byte> all,
                                       Deadline deadline) {
  if (shared_.ranks() == 1) return;
  std::vector<std::byte> taken = gathered;
  const std::size_t piece_bytes = shared_.piece_bytes();
  const std::size_t pieces = (all.size() + piece_bytes - 1) / piece_bytes;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t begin = piece * piece_bytes;
    const std::size_t bytes = std::min(piece_bytes, all.size() - begin);
    const auto take = [&] { std::memcpy(taken.data() + begin, shared_.piece(0, piece).data(), bytes); };
    if (local_rank_ == 0) std::memcpy(shared_.own_piece(piece).data(), gathered.data() + begin, bytes);
    try {
      shared_.barrier(deadline);
    } catch (const GenerationEnded&) {
      if (piece + 1 == pieces && shared_.has_arrived(0)) {
        take();
        std::memcpy(all.data(), taken.data(), all.size());
      }
      throw;
    }
    take();
  }
  std::memcpy(all.data(), taken.data(), all.size());
  shared_.barrier(deadline);
}

// What a rank tells the others before a broadcast. Hosts may differ in the number of slots, and so in the pieces for
// which they have room.
struct BroadcastWish {
  std::uint64_t piece_bytes = 0;
  std::uint64_t takes = 0;
};

struct HostsCommunicator::Broadcast {
  const HostLayout& layout;
  std::span<const std::span<std::byte>> parts;
  int root = 0;
  std::vector<BroadcastWish> wishes;  // by rank
  std::size_t bytes = bytes_of(parts);
  // The smallest piece of all ranks, which all have room for.
  std::size_t piece_bytes = std::min_element(wishes.begin(), wishes.end(), [](const auto& a, const auto& b) {
                              return a.piece_bytes < b.piece_bytes;
                            }) -> piece_bytes;

  std::size_t pieces() const { return (bytes + piece_bytes - 1) / piece_bytes; }
  std::size_t bytes_in(std::size_t piece) const { return std::min(piece_bytes, bytes - piece * piece_bytes); }
  int root_host() const { return layout.host_of(root); }
  bool takes_at(int rank) const { return rank != root && wishes[static_cast<std::size_t>(rank)].takes != 0; }
  // Whether a rank of the host takes, from its local rank `first` on.
  bool is_taken_on(int host, int first = 0) const {
    for (int local = first; local < layout.ranks_of(host); ++local) {
      if (takes_at(layout.first_rank(host) + local)) return true;
    }
    return false;
  }
};

// All ranks first learn who takes, so that nothing is sent to a host on which nobody does.
void HostsCommunicator::broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes,
                                  Deadline deadline) {
  HOLDFAST_ASSERT(root >= 0 && root < size());
  call([&] {
    const BroadcastWish own{.piece_bytes = shared_.piece_bytes(), .takes = takes ? 1U : 0U};
    std::vector<BroadcastWish> wishes(static_cast<std::size_t>(size()));
    gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(wishes)), deadline);
    const Broadcast broadcast{.layout = layout_, .parts = parts, .root = root, .wishes = std::move(wishes)};
    if (broadcast.piece_bytes == 0) {
      throw FrameError(FrameFault::other_content, "a rank has no room for a piece of a broadcast");
    }
    if (host_ == broadcast.root_host()) {
      send_broadcast(broadcast, deadline);
    } else if (broadcast.is_taken_on(host_)) {
      receive_broadcast(broadcast, deadline);
    }
  });
}

// The root fills one piece while the others read the other. Where only other hosts take, and the root is on lane 0,
// nothing is copied.
void HostsCommunicator::send_broadcast(const Broadcast& broadcast, Deadline deadline) {
  const int root = layout_.local_rank(broadcast.root);
  PartsCursor cursor(broadcast.parts);
  if (root == 0 && !broadcast.is_taken_on(host_)) {
    for (std::size_t piece = 0; local_rank_ == 0 && piece < broadcast.pieces(); ++piece) {
      send_piece(broadcast, piece, read_only(cursor.take(broadcast.piece_bytes)), deadline);
    }
    return;
  }
  for (std::size_t piece = 0; piece < broadcast.pieces(); ++piece) {
    const std::size_t bytes = broadcast.bytes_in(piece);
    if (local_rank_ == root) cursor.copy_to(shared_.own_piece(piece).first(bytes));
    shared_.barrier(deadline);
    const std::span<const std::byte> filled = shared_.piece(root, piece).first(bytes);
    if (broadcast.takes_at(rank_)) cursor.copy_from(filled);
    if (local_rank_ == 0) send_piece(broadcast, piece, {filled}, deadline);
  }
  if (broadcast.pieces() > 0) shared_.barrier(deadline);
}

// The other way round: the rank on lane 0 fills the pieces with what arrives.
void HostsCommunicator::receive_broadcast(const Broadcast& broadcast, Deadline deadline) {
  PartsCursor cursor(broadcast.parts);
  if (!broadcast.is_taken_on(host_, 1)) {
    for (std::size_t piece = 0; local_rank_ == 0 && piece < broadcast.pieces(); ++piece) {
      receive_piece(broadcast, piece, cursor.take(broadcast.piece_bytes), deadline);
    }
    return;
  }
  for (std::size_t piece = 0; piece < broadcast.pieces(); ++piece) {
    const std::size_t bytes = broadcast.bytes_in(piece);
    if (local_rank_ == 0) receive_piece(broadcast, piece, {shared_.own_piece(piece).first(bytes)}, deadline);
    shared_.barrier(deadline);
    if (broadcast.takes_at(rank_)) cursor.copy_from(shared_.piece(0, piece).first(bytes));
  }
  if (broadcast.pieces() > 0) shared_.barrier(deadline);
}

void HostsCommunicator::send_piece(const Broadcast& broadcast, std::size_t piece, const ConstFrameBody& body,
                                   Deadline deadline) {
  OneFrameTask task(layout_.hosts(), FrameKind::piece, static_cast<std::uint32_t>(piece));
  for (int host = 0; host < layout_.hosts(); ++host) {
    if (host != host_ && broadcast.is_taken_on(host)) task.send_to(host, body);
  }
  lane_->run(task, call_, deadline);
}

void HostsCommunicator::receive_piece(const Broadcast& broadcast, std::size_t piece, FrameBody body,
                                      Deadline deadline) {
  OneFrameTask task(layout_.hosts(), FrameKind::piece, static_cast<std::uint32_t>(piece));
  task.receive_from(broadcast.root_host(), std::move(body));
  lane_->run(task, call_, deadline);
}

void HostsCommunicator::broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes,
                                         Deadline deadline) {
  std::vector<std::span<std::byte>> parts;
  for (const std::span<float> array : arrays) parts.push_back(std::as_writable_bytes(array));
  broadcast(parts, root, takes, deadline);
}

}  // namespace holdfast
