#pragma once

// The memory through which the ranks of one host add and pass on arrays, and the words on which they wait. Each rank
// has memory that only it writes and that the others of its host read. Communicators use it: MemoryCommunicator where a
// generation has one host, HostsCommunicator for the part within a host.
//
// A rank's memory has two parts:
// - The arena, new in each generation: a SignalWord at byte 0; at byte 32 whether the rank's segment is finite; from
//   byte 64 on the slot numbers of its covering nodes.
// - The blocks, the same in all generations: the slots, the segment, and the result, which peers do not read. New
//   blocks would cost more than a whole step of a small model, all of it for pages that were never touched.
//
// A process of a generation that has ended may still read these blocks. It gets wrong numbers, but cannot pass them on:
// its arena is not used any more, and all waits on it stay cancelled. See docs/decisions/sums.md.
//
// Ranks are counted within the host here, except in sentences for a reader.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/meeting.h"
#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/signal_word.h"

namespace holdfast {

class SharedBlocks {
 public:
  static constexpr std::size_t kArenaBytes = 4096;
  // The size of a rank's blocks. It depends on neither `rank` nor `size`.
  static std::size_t blocks_bytes(const CommunicatorShape& shape);
  // Writes zeros to all bytes that reductions with so many slots write. This makes the kernel allocate their pages
  // before the first step.
  static void touch(const CommunicatorShape& shape, std::span<std::byte> blocks, int used_slots);

  struct Memory {
    SharedMemory own_arena;            // zero-filled
    std::vector<SharedMemory> arenas;  // by rank, readable; the entry of this rank is empty
    std::shared_ptr<SharedMemory> own_blocks;
    std::vector<std::shared_ptr<const SharedMemory>> blocks;  // by rank, readable; the entry of this rank is not used
  };
  // The ranks of the generation that are on this host: `count` of them from `first` on.
  struct Ranks {
    int first = 0;
    int count = 1;
  };
  SharedBlocks(const CommunicatorShape& shape, Ranks ranks, Memory memory);

  int rank() const { return rank_; }
  int ranks() const { return ranks_.count; }

  std::vector<Slot> slots();
  void set_gradient_floats(std::size_t floats);

  // Waits until all ranks of the host are here. Throws GenerationEnded once a rank's word was cancelled, also where all
  // are here: no process may go on in a generation that has ended.
  void barrier(Deadline deadline);
  // Whether the rank is at the barrier that this rank entered last, although the generation may have ended. If so, what
  // it wrote before is there.
  bool has_arrived(int rank) const { return signal(rank).has_reached(phase_); }
  bool have_all_arrived() const;
  // Cancels all waits of all ranks of the host for this one, for good. Any thread.
  void cancel();
  bool is_cancelled() const { return signal(rank_).is_cancelled(); }

  // Says which of this rank's slots hold its covering nodes. The next barrier makes it visible.
  void show_covering_slots(std::span<const int> covering_slots);
  // The covering nodes of all ranks of the host, in rank order. Peers may have chosen any slots, so it is called after
  // the barrier.
  std::vector<const float*> leaves() const;
  const float* slot(int rank, std::uint32_t index) const;

  // The part of a sum that a rank makes for all.
  float* own_segment() { return const_cast<float*>(segment(rank_)); }
  const float* segment(int rank) const;
  void show_finite(bool is_finite);
  // Whether the segments of the first `ranks` ranks are finite.
  bool are_finite(int ranks) const;
  // Copies the segments of the first `ranks` ranks, which together are `range`, into the result.
  void gather(FloatRange range, int ranks, const ArrayPasses& passes);
  // Lies outside of the slots, which training writes while it reads the result.
  std::span<float> result();
  // A block divided into gradients and tail.
  Sums parted(std::span<const float> block) const;

  // The slots as room for other bytes, while no sum is made.
  std::size_t slots_bytes() const;
  std::span<std::byte> own_bytes() { return memory_.own_blocks->writable().first(slots_bytes()); }
  std::span<const std::byte> bytes(int rank) const { return {blocks(rank), slots_bytes()}; }
  // Two buffers alternate within these bytes, so that one rank fills one while the others read the other.
  std::size_t piece_bytes() const;
  std::span<std::byte> own_piece(std::size_t number) {
    return own_bytes().subspan(number % 2 * piece_bytes(), piece_bytes());
  }
  std::span<const std::byte> piece(int rank, std::size_t number) const {
    return bytes(rank).subspan(number % 2 * piece_bytes(), piece_bytes());
  }

 private:
  const std::byte* arena(int rank) const;
  const SignalWord& signal(int rank) const { return *reinterpret_cast<const SignalWord*>(arena(rank)); }
  SignalWord& own_signal() { return *reinterpret_cast<SignalWord*>(memory_.own_arena.writable().data()); }
  const std::byte* blocks(int rank) const;

  const Ranks ranks_;
  const int rank_;
  CommunicatorShape shape_;
  std::vector<int> leaf_ranks_;  // the rank of each covering node
  Memory memory_;
  std::uint32_t phase_ = 0;  // barriers that this rank has entered
};

}  // namespace holdfast
