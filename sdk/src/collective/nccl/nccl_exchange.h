#pragma once

// What the ranks of one generation do with arrays in the memory of their devices: the shard-order sum of slots, and
// broadcasts. Each rank owns one segment of what is added: it gets the partial sums of that segment from every other
// rank, adds them in the shard tree's order, and sends the result to all. With one covering node a rank that is as many
// bytes as a ring moves, in two hops, and the same bits on any number of ranks.
//
// A sum is made in pieces, the last floats first, as a backward pass completes them; the same pieces on every rank.
// Each begins behind what training had queued when its floats were handed over, while training computes the others.
//
// Ranks begin together, as the control communicator says: who waits for a slow peer then does so on the host, where the
// deadline's error names it, not in a kernel. A single rank needs no NCCL. For one thread.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/nccl/nccl_connection.h"
#include "collective/shard_deal.h"

namespace holdfast {

struct NcclExchangeShape {
  int rank = 0;
  int size = 1;
  ShardDeal deal{};
  int slots = 1;                // for each rank, the same in every generation
  std::size_t float_count = 0;  // of a slot; a multiple of 16
  // Of what peers send at a time; a multiple of 16. 64 MiB: large models need little more memory than their slots.
  std::size_t most_received = std::size_t{16} * 1024 * 1024;
  // Of a piece, about; what peers send may make it smaller. 16 MiB is about what others of the field take for this; not
  // measured.
  std::size_t most_in_a_piece = std::size_t{4} * 1024 * 1024;
  bool in_the_librarys_order = false;  // ncclAllReduce instead: other bits for other numbers of ranks
  NcclBounds bounds{};

  // Device memory that a replica keeps in all generations: the slots, the sum, and room for what peers send. The same
  // for every rank, size and deal of the same shards.
  std::size_t block_floats() const;
};

class NcclExchange {
 public:
  // `library` is null for a single rank; `blocks` are shape.block_floats() of the device's memory. Connects, by the
  // deadline. `control` must outlive the exchange.
  NcclExchange(const NcclExchangeShape& shape, std::shared_ptr<NcclLibrary> library,
               std::shared_ptr<CollectiveStream> stream, Communicator& control, std::shared_ptr<float[]> blocks,
               Deadline deadline);

  std::vector<std::span<float>> slots();

  // See Communicator.
  std::size_t piece_floats() const;
  void hand_over(FloatRange range);
  void begin_reduce(std::span<const int> covering_slots, Deadline deadline);

  // The shard-order sum of `range`, complete on this rank's device, but not before the control communicator's next
  // barrier known to be so on all others; valid until the next call. Slots may be written again behind that barrier.
  std::span<const float> reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline);
  // Whether what this rank added of the last reduction is finite. All ranks together have added everything.
  bool was_finite() const { return was_finite_; }

  // Rank `root`'s floats replace those of everyone who takes them.
  void broadcast(std::span<float> array, int root, bool takes, Deadline deadline);

 private:
  float* slot(int index) const;
  float* sum() const;
  float* received_leaf(std::size_t leaf, std::size_t floats) const;

  FloatRange segment_of(int rank, FloatRange piece) const;
  std::vector<const float*> own_leaves(std::span<const int> covering_slots) const;

  void warm_up(Deadline deadline);
  void forget_what_was_handed_over();
  std::vector<FloatRange> pieces_of(FloatRange range) const;
  // `follow` is called before each piece is queued.
  void queue_sum(const std::vector<const float*>& own, FloatRange range,
                 const std::function<void(std::size_t piece)>& follow, Deadline deadline);
  void add_piece(const std::vector<const float*>& own, FloatRange piece, Deadline deadline);
  void add_in_shard_order(const std::vector<const float*>& own, FloatRange piece, Deadline deadline);
  void exchange_partial_sums(const std::vector<const float*>& own, FloatRange piece);
  void add_segment(const std::vector<const float*>& own, FloatRange segment);
  void share_segments(FloatRange piece);
  void add_in_the_librarys_order(const std::vector<const float*>& own, FloatRange range, Deadline deadline);
  std::vector<int> takers_of(int root, bool takes, Deadline deadline);
  void wait(const std::string& what, Deadline deadline);

  const NcclExchangeShape shape_;
  const std::vector<SumInstruction> program_;
  const std::vector<int> leaf_ranks_;  // the rank of each leaf of program_
  const std::shared_ptr<CollectiveStream> stream_;
  Communicator& control_;
  const std::shared_ptr<float[]> blocks_;
  std::optional<NcclConnection> connection_;  // of two ranks or more
  const std::vector<FloatRange> pieces_;      // of all floats
  std::vector<std::size_t> missing_;          // of each piece, floats that are not handed over
  bool has_begun_ = false;                    // the sum that reduce() is to complete
  bool was_finite_ = true;
};

}  // namespace holdfast
