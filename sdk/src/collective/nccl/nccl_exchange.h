#pragma once

// The all-reduce in the shard tree's order between GPUs, and broadcasts.
//
// Each rank owns one segment of what is added. It receives the partial sums of that segment from all other ranks, adds
// them in the shard tree's order, and sends the result to all ranks. If each rank has one covering node, this moves as
// many bytes as a ring all-reduce, in two hops, and gives the same bits on any number of ranks.
//
// A sum is made in buckets. The last floats come first, as the backward pass completes them, and all ranks have the
// same buckets. A bucket waits for the work that training had queued when its last floats were declared ready.
// Meanwhile training computes the gradients of the others.
//
// The ranks begin together, by a barrier of the control communicator. A rank that waits for a slow peer does so on the
// host, where the deadline's error names the peer, and not in a kernel that spins. A single rank needs no NCCL. For one
// thread. See docs/decisions/nccl.md.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/nccl/nccl_connection.h"
#include "collective/shard_assignment.h"

namespace holdfast {

struct NcclExchangeShape {
  int rank = 0;
  int size = 1;
  ShardAssignment assignment{};
  int slots = 1;                // of each rank, the same in every generation
  std::size_t float_count = 0;  // of a slot, a multiple of 16
  // The most floats that are received from peers at a time; a multiple of 16. With 64 MiB, large models need little
  // more memory than their slots.
  std::size_t most_received = std::size_t{16} * 1024 * 1024;
  // The size of a bucket in floats, approximately; `most_received` may make it smaller. 16 MiB is near what other
  // libraries use; it was not measured.
  std::size_t wanted_bucket_floats = std::size_t{4} * 1024 * 1024;
  bool library_order = false;  // ncclAllReduce instead: other bits for other numbers of ranks
  NcclBounds bounds{};

  // The device memory that a replica keeps through all generations: the slots, the sum, and room for what peers send.
  // It depends on neither rank, nor size, nor the assignment of the shards.
  std::size_t block_floats() const;
};

class NcclExchange {
 public:
  // Connects by the deadline. `library` may be null for a single rank. `blocks` are shape.block_floats() floats of
  // device memory. `control` must outlive the exchange.
  NcclExchange(const NcclExchangeShape& shape, std::shared_ptr<NcclLibrary> library,
               std::shared_ptr<CollectiveStream> stream, Communicator& control, std::shared_ptr<float[]> blocks,
               Deadline deadline);

  std::vector<std::span<float>> slots();

  // See Communicator.
  std::size_t bucket_floats() const;
  void mark_ready(FloatRange range);
  void begin_reduce(std::span<const int> covering_slots, Deadline deadline);

  // The shard-order sum of `range`, complete on this rank's device and valid until the next call. After the control
  // communicator's next barrier it is known to be complete on all ranks, and slots may be written again.
  std::span<const float> reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline);
  // Whether the sums that this rank added in the last reduction are finite. Each rank checks only its own segments.
  bool was_finite() const { return was_finite_; }

  // Copies the floats of rank `root` to each rank that passes `takes`.
  void broadcast(std::span<float> array, int root, bool takes, Deadline deadline);

 private:
  float* slot(int index) const;
  float* sum() const;
  float* received_leaf(std::size_t leaf, std::size_t floats) const;

  std::vector<const float*> own_leaves(std::span<const int> covering_slots) const;

  void warm_up(Deadline deadline);
  void reset_buckets();
  std::vector<FloatRange> buckets_of(FloatRange range) const;
  // `follow` is called before each bucket is queued.
  void queue_sum(const std::vector<const float*>& own, FloatRange range,
                 const std::function<void(std::size_t bucket)>& follow, Deadline deadline);
  void reduce_bucket(const std::vector<const float*>& own, FloatRange bucket, Deadline deadline);
  void add_in_shard_order(const std::vector<const float*>& own, FloatRange bucket, Deadline deadline);
  void exchange_partial_sums(const std::vector<const float*>& own, FloatRange bucket);
  void add_segment(const std::vector<const float*>& own, FloatRange segment);
  void share_segments(FloatRange bucket);
  void add_in_library_order(const std::vector<const float*>& own, FloatRange range, Deadline deadline);
  std::vector<int> takers_of(int root, bool takes, Deadline deadline);
  void wait(const std::string& what, Deadline deadline);

  const NcclExchangeShape shape_;
  const std::vector<SumInstruction> program_;
  const std::vector<int> leaf_ranks_;  // the rank of each leaf of program_
  const std::shared_ptr<CollectiveStream> stream_;
  Communicator& control_;
  const std::shared_ptr<float[]> blocks_;
  std::optional<NcclConnection> connection_;  // empty for a single rank
  const std::vector<FloatRange> buckets_;     // the buckets of a whole block
  std::vector<std::size_t> missing_;          // for each bucket, how many floats are not ready yet
  bool has_begun_ = false;                    // the sum is queued, and reduce() only has to wait for it
  bool was_finite_ = true;
};

}  // namespace holdfast
