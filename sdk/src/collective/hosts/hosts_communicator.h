#pragma once

// Collectives of ranks on several hosts: shared memory within a host, links between hosts, and one shard tree over all
// ranks. Sums have the bits of MemoryCommunicator for the same shards.
//
// In a reduction lane i has segment i of the block. Each host adds a part of it, from the partial sums of all hosts
// (SumTask). Ranks beyond the lanes wait meanwhile. Barriers, gatherings and broadcasts go through lane 0: once to each
// host, and within it through shared memory.
//
// Whatever a call throws, the rank also cancels its own word and shuts its links down. So its peers, on this host and
// on others, leave their calls at once, before an agent has noticed anything. See docs/decisions/hosts.md.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collective/communicator.h"
#include "collective/hosts/host_layout.h"
#include "collective/hosts/host_sums.h"
#include "collective/hosts/lane.h"
#include "collective/hosts/link.h"
#include "collective/hosts/sum_task.h"
#include "collective/meeting.h"
#include "collective/memory/shared_blocks.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {

// How the ranks of a generation reach each other.
struct HostConnections {
  HostLayout layout;
  std::uint64_t generation = 0;
  SharedBlocks::Memory memory;               // of the ranks of this host, by local rank
  std::vector<std::unique_ptr<Link>> links;  // by host, of a rank on a lane; the entry of this host is empty
  FileDescriptor cancel_event;               // readable once the generation has ended; may be missing (link_wait.h)
};

class HostsCommunicator final : public Communicator {
 public:
  // What is sent at a time: large enough that a header costs nothing, small enough that a sum is on its way back early.
  // Measured in docs/measurements.md. The same on all ranks.
  static constexpr std::size_t kPieceFloats = std::size_t{64} * 1024;

  // Throws Error{invalid_argument} if the layout is not one of shape.size ranks, or a link is missing.
  HostsCommunicator(const CommunicatorShape& shape, HostConnections connections,
                    std::size_t piece_floats = kPieceFloats);

  int rank() const override { return rank_; }
  int size() const override { return layout_.ranks(); }
  std::vector<Slot> slots() override { return shared_.slots(); }
  void set_gradient_floats(std::size_t floats) override { shared_.set_gradient_floats(floats); }
  void set_passes(const ArrayPasses& passes) override { passes_ = passes; }
  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override;
  bool was_finite() const override { return was_finite_; }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override;
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override;
  // Weaker than between the ranks of one host: see Communicator.
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override;
  void barrier(Deadline deadline) override;
  bool is_cancelled() const override { return shared_.is_cancelled(); }

  // Ends the generation for this rank and all that exchange with it, for good. Any thread.
  void cancel() noexcept;

 private:
  // What all ranks know of a broadcast.
  struct Broadcast;

  void call(const std::function<void()>& body);
  void synchronize(Deadline deadline);
  void add_over_hosts(FloatRange range, Deadline deadline);
  void gather(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline);
  std::vector<std::byte> gather_hosts(std::size_t own_bytes, Deadline deadline);
  void share_gathered(const std::vector<std::byte>& gathered, std::span<std::byte> all, Deadline deadline);
  void send_broadcast(const Broadcast& broadcast, Deadline deadline);
  void receive_broadcast(const Broadcast& broadcast, Deadline deadline);
  void send_piece(const Broadcast& broadcast, std::size_t piece, const ConstFrameBody& body, Deadline deadline);
  void receive_piece(const Broadcast& broadcast, std::size_t piece, FrameBody body, Deadline deadline);

  const HostLayout layout_;
  const int rank_;
  const int host_;
  const int local_rank_;
  const std::size_t piece_floats_;
  const HostSums sums_;
  const FileDescriptor cancel_event_;
  SharedBlocks shared_;
  std::optional<Lane> lane_;  // of a rank on a lane
  SumTask::Room room_;
  ArrayPasses passes_ = pass_alone;
  std::uint32_t call_ = 0;  // collective calls that this rank has begun
  bool was_finite_ = true;
};

}  // namespace holdfast
