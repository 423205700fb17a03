// The ordered all-reduce, bucket by bucket: partial sums travel to the rank that owns a segment, that rank adds them in
// the tree's order, and the sums travel back. NCCL only moves bytes here. Its own all-reduce adds in an order that
// depends on the number of ranks, and is used only for Reduction::fastest.
//
// Buckets are a function of the model and the assignment of shards. A rank that declares nothing ready, for example
// because it computes no samples, therefore makes the same calls. See docs/decisions/nccl.md.

#include "collective/nccl/nccl_exchange.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "collective/nccl/pause.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Whole cache lines, so that a kernel can load four floats at once.
std::size_t round_up_to_line(std::size_t floats) {
  return (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// Room for the partial sums that peers send. There are no more leaves than shards, and each sends at most a segment.
std::size_t room_for_received(const NcclExchangeShape& shape) {
  const auto leaves = static_cast<std::size_t>(shape.assignment.shards());
  return std::max(std::min(leaves * shape.float_count, shape.most_received), leaves * kLineFloats);
}

// In the order of the sum program's leaves.
std::vector<int> leaf_ranks_of(const ShardAssignment& assignment) {
  const ShardTree tree(assignment.shards());
  std::vector<int> ranks;
  for (int rank = 0; rank < assignment.ranks(); ++rank) {
    ranks.insert(ranks.end(), tree.covering_nodes(assignment.of(rank)).size(), rank);
  }
  return ranks;
}

// Adds the leaves from left to right.
std::vector<SumInstruction> chain_program(std::size_t leaves) {
  std::vector<SumInstruction> program = {SumInstruction::push};
  for (std::size_t leaf = 1; leaf < leaves; ++leaf) {
    program.push_back(SumInstruction::push);
    program.push_back(SumInstruction::add);
  }
  return program;
}

std::string describe(FloatRange range) {
  return fmt::format("floats {} to {}", range.begin, range.end);
}

}  // namespace

std::size_t NcclExchangeShape::block_floats() const {
  return (static_cast<std::size_t>(slots) + 1) * float_count + room_for_received(*this);
}

NcclExchange::NcclExchange(const NcclExchangeShape& shape, std::shared_ptr<NcclLibrary> library,
                           std::shared_ptr<CollectiveStream> stream, Communicator& control,
                           std::shared_ptr<float[]> blocks, Deadline deadline)
    : shape_(shape),
      program_(sum_program(ShardTree(shape.assignment.shards()), shape.assignment.covering_nodes())),
      leaf_ranks_(leaf_ranks_of(shape.assignment)),
      stream_(std::move(stream)),
      control_(control),
      blocks_(std::move(blocks)),
      buckets_(buckets_of({0, shape.float_count})) {
  HOLDFAST_ASSERT(shape.float_count > 0 && shape.float_count % kLineFloats == 0 && shape.slots > 0);
  HOLDFAST_ASSERT(shape.assignment.ranks() == shape.size && control.size() == shape.size &&
                  control.rank() == shape.rank);
  reset_buckets();
  // A single rank needs no connection, and works without NCCL.
  if (shape.size == 1) return;
  HOLDFAST_ASSERT(library != nullptr);
  connection_.emplace(std::move(library), stream_, control_, blocks_, shape.bounds, deadline);
  warm_up(deadline);
}

float* NcclExchange::slot(int index) const {
  HOLDFAST_ASSERT(index >= 0 && index < shape_.slots);
  return blocks_.get() + static_cast<std::size_t>(index) * shape_.float_count;
}

float* NcclExchange::sum() const {
  return blocks_.get() + static_cast<std::size_t>(shape_.slots) * shape_.float_count;
}

std::vector<std::span<float>> NcclExchange::slots() {
  std::vector<std::span<float>> slots;
  for (int index = 0; index < shape_.slots; ++index) slots.emplace_back(slot(index), shape_.float_count);
  return slots;
}

// Chosen so that the segments of all leaves fit into the room for received floats, on every rank.
// A bucket of whole lines for every rank lets all of them gather in one call.
std::size_t NcclExchange::bucket_floats() const {
  const auto size = static_cast<std::size_t>(shape_.size);
  const std::size_t room = room_for_received(shape_) / leaf_ranks_.size() / kLineFloats;
  const std::size_t wanted = std::max(shape_.wanted_bucket_floats / size / kLineFloats, std::size_t{1});
  return std::min(room, wanted) * kLineFloats * size;
}

// From the last floats to the first, which is the order in which a backward pass completes them.
std::vector<FloatRange> NcclExchange::buckets_of(FloatRange range) const {
  const std::size_t floats = bucket_floats();
  std::vector<FloatRange> buckets;
  for (std::size_t end = range.end; end > range.begin; end = buckets.back().begin) {
    buckets.push_back({end - std::min(floats, end - range.begin), end});
  }
  return buckets;
}

std::vector<const float*> NcclExchange::own_leaves(std::span<const int> covering_slots) const {
  HOLDFAST_ASSERT(static_cast<std::ptrdiff_t>(covering_slots.size()) ==
                  std::count(leaf_ranks_.begin(), leaf_ranks_.end(), shape_.rank));
  std::vector<const float*> leaves;
  for (const int index : covering_slots) leaves.push_back(slot(index));
  return leaves;
}

// NCCL connects two ranks when they first exchange something, which may take longer than a step. So a small sum is made
// here.
void NcclExchange::warm_up(Deadline deadline) {
  stream_->follow_training();
  stream_->begin_sums();
  const auto leaves = std::count(leaf_ranks_.begin(), leaf_ranks_.end(), shape_.rank);
  const std::vector<const float*> own(static_cast<std::size_t>(leaves), slot(0));
  const std::size_t even = kLineFloats * static_cast<std::size_t>(shape_.size);
  reduce_bucket(own, {0, std::min(even, shape_.float_count)}, deadline);
  connection_->wait("connecting", deadline);
  control_.barrier(deadline);
}

void NcclExchange::reset_buckets() {
  missing_.clear();
  for (const FloatRange bucket : buckets_) missing_.push_back(bucket.end - bucket.begin);
  has_begun_ = false;
}

// A range may complete several buckets, and several ranges one bucket.
void NcclExchange::mark_ready(FloatRange range) {
  HOLDFAST_ASSERT(!has_begun_ && range.begin <= range.end && range.end <= shape_.float_count);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const std::size_t begin = std::max(range.begin, buckets_[bucket].begin);
    const std::size_t end = std::min(range.end, buckets_[bucket].end);
    if (begin >= end) continue;
    if (end - begin > missing_[bucket]) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("gradients among {} were declared ready twice in one step; declare each of them once",
                              describe({begin, end})));
    }
    missing_[bucket] -= end - begin;
    if (missing_[bucket] == 0) stream_->mark_training(bucket);
  }
}

void NcclExchange::begin_reduce(std::span<const int> covering_slots, Deadline deadline) {
  // A bucket that is not ready would be sent with old numbers.
  HOLDFAST_ASSERT(std::all_of(missing_.begin(), missing_.end(), [](std::size_t floats) { return floats == 0; }));
  const std::vector<const float*> own = own_leaves(covering_slots);
  control_.barrier(deadline);
  queue_sum(
      own, {0, shape_.float_count}, [this](std::size_t bucket) { stream_->follow_training(bucket); }, deadline);
  has_begun_ = true;
}

std::span<const float> NcclExchange::reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) {
  HOLDFAST_ASSERT(range.begin <= range.end && range.end <= shape_.float_count);
  const std::vector<const float*> own = own_leaves(covering_slots);
  // What begin_reduce() queued covers the whole block, so any other range is a mistake.
  if (has_begun_) {
    HOLDFAST_ASSERT(range.begin == 0 && range.end == shape_.float_count);
  } else {
    control_.barrier(deadline);
    stream_->follow_training();
    queue_sum(
        own, range, [](std::size_t) {}, deadline);
  }
  reset_buckets();
  wait("sum of " + describe(range), deadline);
  was_finite_ = stream_->were_finite();
  return {shape_.size == 1 ? own[0] : sum(), shape_.float_count};
}

void NcclExchange::queue_sum(const std::vector<const float*>& own, FloatRange range,
                             const std::function<void(std::size_t bucket)>& follow, Deadline deadline) {
  stream_->begin_sums();
  const std::vector<FloatRange> buckets = buckets_of(range);
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    follow(bucket);
    reduce_bucket(own, buckets[bucket], deadline);
  }
}

void NcclExchange::reduce_bucket(const std::vector<const float*>& own, FloatRange bucket, Deadline deadline) {
  if (shape_.size == 1) {
    // The leaf is the sum already. It is only checked for NaN.
    const float* const leaf = own[0] + bucket.begin;
    stream_->add_in_order(
        {.program = program_, .leaves = std::span(&leaf, 1), .floats = bucket.end - bucket.begin, .sum = nullptr});
  } else if (shape_.library_order) {
    add_in_library_order(own, bucket, deadline);
  } else {
    add_in_shard_order(own, bucket, deadline);
  }
}

void NcclExchange::wait(const std::string& what, Deadline deadline) {
  // Without a connection only the kernel of the check is awaited.
  if (connection_) return connection_->wait(what, deadline);
  stream_->mark();
  for (Pause pause; !stream_->has_passed_mark(); pause()) {
    if (control_.is_cancelled()) throw GenerationEnded(fmt::format("the generation was ended during the {}", what));
    if (deadline.has_passed()) {
      throw Error(ErrorCode::deadline_exceeded,
                  fmt::format("the {} on {} did not end by its deadline; a kernel hangs, or the device is lost", what,
                              stream_->device()));
    }
  }
}

// The stream orders the three parts, so the host does not wait in between.
void NcclExchange::add_in_shard_order(const std::vector<const float*>& own, FloatRange bucket, Deadline deadline) {
  connection_->queue(
      "exchange of " + describe(bucket), [&] { exchange_partial_sums(own, bucket); }, deadline);
  add_segment(own, segment_of(shape_.rank, shape_.size, bucket));
  connection_->queue(
      "gathering of " + describe(bucket), [&] { share_segments(bucket); }, deadline);
}

// Messages between two ranks arrive in the order in which they were sent, so leaves need no tags.
void NcclExchange::exchange_partial_sums(const std::vector<const float*>& own, FloatRange bucket) {
  const FloatRange mine = segment_of(shape_.rank, shape_.size, bucket);
  for (int peer = 0; peer < shape_.size; ++peer) {
    const FloatRange segment = segment_of(peer, shape_.size, bucket);
    if (peer == shape_.rank || segment.begin == segment.end) continue;
    for (const float* leaf : own) connection_->send(leaf + segment.begin, segment.end - segment.begin, peer);
  }
  // The last ranks of a small bucket own nothing, but still send.
  if (mine.begin == mine.end) return;
  for (std::size_t leaf = 0; leaf < leaf_ranks_.size(); ++leaf) {
    if (leaf_ranks_[leaf] == shape_.rank) continue;
    const std::size_t floats = mine.end - mine.begin;
    connection_->receive(received_leaf(leaf, floats), floats, leaf_ranks_[leaf]);
  }
}

// Each leaf begins at a cache line, so that kernels can read several floats at once.
float* NcclExchange::received_leaf(std::size_t leaf, std::size_t floats) const {
  return sum() + shape_.float_count + leaf * round_up_to_line(floats);
}

void NcclExchange::add_segment(const std::vector<const float*>& own, FloatRange segment) {
  const std::size_t floats = segment.end - segment.begin;
  if (floats == 0) return;
  std::vector<const float*> leaves;
  std::size_t next_own = 0;
  for (std::size_t leaf = 0; leaf < leaf_ranks_.size(); ++leaf) {
    const bool is_own = leaf_ranks_[leaf] == shape_.rank;
    leaves.push_back(is_own ? own[next_own++] + segment.begin : received_leaf(leaf, floats));
  }
  stream_->add_in_order({.program = program_, .leaves = leaves, .floats = floats, .sum = sum() + segment.begin});
}

void NcclExchange::share_segments(FloatRange bucket) {
  const FloatRange mine = segment_of(shape_.rank, shape_.size, bucket);
  const std::size_t floats = mine.end - mine.begin;
  // The condition has the same answer on every rank, so all of them choose the same way.
  // NCCL's all-gather needs equal parts, which a last bucket may not have.
  const FloatRange first = segment_of(0, shape_.size, bucket);
  if ((first.end - first.begin) * static_cast<std::size_t>(shape_.size) == bucket.end - bucket.begin) {
    return connection_->all_gather(sum() + mine.begin, sum() + bucket.begin, floats);
  }
  for (int peer = 0; peer < shape_.size; ++peer) {
    if (peer == shape_.rank) continue;
    const FloatRange segment = segment_of(peer, shape_.size, bucket);
    if (floats > 0) connection_->send(sum() + mine.begin, floats, peer);
    if (segment.begin < segment.end) {
      connection_->receive(sum() + segment.begin, segment.end - segment.begin, peer);
    }
  }
}

void NcclExchange::add_in_library_order(const std::vector<const float*>& own, FloatRange range, Deadline deadline) {
  const std::size_t floats = range.end - range.begin;
  const float* summand = own[0] + range.begin;
  if (own.size() > 1) {
    std::vector<const float*> leaves;
    for (const float* leaf : own) leaves.push_back(leaf + range.begin);
    stream_->add_in_order(
        {.program = chain_program(own.size()), .leaves = leaves, .floats = floats, .sum = sum() + range.begin});
    summand = sum() + range.begin;
  }
  connection_->queue(
      "all-reduce of " + describe(range), [&] { connection_->all_reduce(summand, sum() + range.begin, floats); },
      deadline);
  // NCCL's all-reduce does not check for NaN, so its result is checked here.
  const float* const all = sum() + range.begin;
  stream_->add_in_order({.program = chain_program(1), .leaves = std::span(&all, 1), .floats = floats, .sum = nullptr});
}

// The ranks to send to: the other ones do not need the array.
std::vector<int> NcclExchange::takers_of(int root, bool takes, Deadline deadline) {
  const auto own = static_cast<std::byte>(takes);
  std::vector<std::byte> all(static_cast<std::size_t>(shape_.size));
  control_.gather_all(std::span(&own, 1), all, deadline);
  std::vector<int> takers;
  for (int rank = 0; rank < shape_.size; ++rank) {
    if (rank != root && all[static_cast<std::size_t>(rank)] != std::byte{0}) takers.push_back(rank);
  }
  return takers;
}

void NcclExchange::broadcast(std::span<float> array, int root, bool takes, Deadline deadline) {
  HOLDFAST_ASSERT(root >= 0 && root < shape_.size);
  if (shape_.size == 1 || array.empty()) return;
  const std::vector<int> takers = takers_of(root, takes, deadline);
  const bool is_taker = std::find(takers.begin(), takers.end(), shape_.rank) != takers.end();
  const std::string what = fmt::format("broadcast of {} floats from rank {}", array.size(), root);
  stream_->follow_training();
  if (static_cast<int>(takers.size()) == shape_.size - 1) {
    connection_->queue(
        what, [&] { connection_->broadcast(array.data(), array.size(), root); }, deadline);
  } else if (shape_.rank == root && !takers.empty()) {
    const auto send_to_all = [&] {
      for (const int taker : takers) connection_->send(array.data(), array.size(), taker);
    };
    connection_->queue(what, send_to_all, deadline);
  } else if (is_taker) {
    connection_->queue(
        what, [&] { connection_->receive(array.data(), array.size(), root); }, deadline);
  }
  connection_->wait(what, deadline);
  // No rank may abort while a peer still reads what it sent.
  control_.barrier(deadline);
}

}  // namespace holdfast
