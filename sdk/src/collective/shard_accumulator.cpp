// A thread that completes a shard also adds what becomes complete by it, up the tree. The additions run outside of the
// lock, in any order of time: which two slots are added, and which is the left one, is given by the tree alone. So the
// bits do not depend on the threads. After the last shard no thread has another one to compute, so all share the
// additions that are left. See docs/decisions/sums.md.

#include "collective/shard_accumulator.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>

#include "holdfast/base/error.h"

namespace holdfast {

int ShardAccumulator::slots_needed(int local, int workers) {
  // The complete shards between two running ones are covered by at most 2 log2(local) nodes.
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(local)));
  return std::min(local, workers * (1 + 2 * levels));
}

ShardAccumulator::ShardAccumulator(ShardTree tree, ShardRange local, std::vector<Slot> slots, MemorySpace& memory)
    : tree_(tree), local_(local), slots_(std::move(slots)), memory_(memory) {
  reset();
}

void ShardAccumulator::reset() {
  const std::lock_guard lock(mutex_);
  running_.clear();
  complete_nodes_.clear();
  acquired_ = 0;
  last_.reset();
  free_slots_.clear();
  // The first slots are taken first, so a step touches no more memory than it needs.
  for (int slot = static_cast<int>(slots_.size()) - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Slot ShardAccumulator::acquire(int shard) {
  const std::lock_guard lock(mutex_);
  // slots_needed() guarantees a free slot, if the caller runs no more workers than it said.
  HOLDFAST_ASSERT(local_.contains({shard, shard + 1}) && !free_slots_.empty());
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  running_[shard] = slot;
  ++acquired_;
  return slots_[static_cast<std::size_t>(slot)];
}

// Returns whether the sum is finite. One loop: both are limited by the memory, so the look costs nothing in it. An
// exponent of ones is infinity or NaN.
static bool add_and_look(std::span<const float> summand, std::span<float> sum) {
  constexpr std::uint32_t kExponent = 0x7F80'0000U;
  // The promise that the arrays do not overlap lets the compiler add whole vectors without a check.
  const float* const __restrict addend = summand.data();
  float* const __restrict result = sum.data();
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const float total = result[i] + addend[i];
    result[i] = total;
    found |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(total) & kExponent) == kExponent);
  }
  return found == 0;
}

static bool add_on_host(std::span<const float> summand, std::span<float> sum, const ArrayPasses& passes) {
  std::atomic<bool> is_finite = true;
  const auto add_range = [&](std::size_t begin, std::size_t end) {
    if (!add_and_look(summand.subspan(begin, end - begin), sum.subspan(begin, end - begin))) is_finite = false;
  };
  passes(sum.size(), 3, std::ref(add_range));
  return is_finite;
}

std::optional<bool> ShardAccumulator::add(const std::pair<Node, Node>& children, FloatRange range,
                                          std::span<const FloatRange> left_out, const ArrayPasses& passes) const {
  // The right one is added to the left one, as the tree says; the sum stays in the left slot.
  const Slot& left = slots_[static_cast<std::size_t>(children.first.slot)];
  const Slot& right = slots_[static_cast<std::size_t>(children.second.slot)];
  const std::size_t gradients = left.gradients.size();
  const auto part = [](const auto& floats, std::size_t begin, std::size_t end) {
    return floats.subspan(begin, end - begin);
  };
  std::optional<bool> is_finite;
  if (range.begin < gradients) {
    const auto add_part = [&](std::size_t begin, std::size_t end) {
      const std::span<const float> summand = part(right.gradients, begin, end);
      const std::span<float> sum = part(left.gradients, begin, end);
      if (!memory_.is_host()) return memory_.add(summand, sum);
      is_finite = add_on_host(summand, sum, passes) && is_finite.value_or(true);
    };
    std::size_t begin = range.begin;
    for (const FloatRange& hole : left_out) {
      add_part(begin, hole.begin);
      begin = hole.end;
    }
    add_part(begin, std::min(range.end, gradients));
  }
  if (range.end > gradients) {
    const std::size_t begin = std::max(range.begin, gradients) - gradients;
    host_memory().add(part(right.tail, begin, range.end - gradients), part(left.tail, begin, range.end - gradients));
  }
  return is_finite;
}

std::optional<std::pair<ShardAccumulator::Node, ShardAccumulator::Node>> ShardAccumulator::take_pair(
    const Node& node, Nodes& complete) const {
  const std::optional<ShardRange> sibling = tree_.sibling(node.range);
  const auto found = sibling ? complete.find(sibling->begin) : complete.end();
  if (found == complete.end() || found->second.range != *sibling) return std::nullopt;
  const Node other = found->second;
  complete.erase(found);
  return node.range.begin < other.range.begin ? std::pair(node, other) : std::pair(other, node);
}

ShardAccumulator::Node ShardAccumulator::parent_of(const std::pair<Node, Node>& children) {
  const auto& [left, right] = children;
  return {{left.range.begin, right.range.end}, left.slot};
}

void ShardAccumulator::complete(int shard, FloatRange range, std::span<const FloatRange> left_out) {
  std::unique_lock lock(mutex_);
  Node node{{shard, shard + 1}, running_.at(shard)};
  running_.erase(shard);
  if (running_.empty() && acquired_ == local_.count()) {
    last_ = {node, range, left_out};
    return;
  }
  // Both children are taken out before the lock is released, so that no other thread adds them too.
  while (const auto children = take_pair(node, complete_nodes_)) {
    lock.unlock();
    add(*children, range, left_out, pass_alone);
    lock.lock();

    free_slots_.push_back(children->second.slot);
    node = parent_of(*children);
  }
  complete_nodes_[node.range.begin] = node;
}

// No other thread calls the accumulator now, so the lock may be held.
std::optional<bool> ShardAccumulator::finish(const ArrayPasses& passes) {
  const std::lock_guard lock(mutex_);
  HOLDFAST_ASSERT(last_.has_value() && running_.empty());
  std::optional<bool> is_finite;
  Node node = last_->node;
  while (const auto children = take_pair(node, complete_nodes_)) {
    is_finite = add(*children, last_->range, last_->left_out, passes);
    node = parent_of(*children);
  }
  complete_nodes_[node.range.begin] = node;
  last_.reset();
  return is_finite;
}

std::vector<int> ShardAccumulator::add_ahead(int shard, FloatRange range) const {
  const std::lock_guard lock(mutex_);
  HOLDFAST_ASSERT(running_.size() == 1);
  // A copy: complete() must find these nodes again when the rest of the shard is there.
  Nodes complete = complete_nodes_;
  Node node{{shard, shard + 1}, running_.at(shard)};
  while (const auto children = take_pair(node, complete)) {
    add(*children, range, {}, pass_alone);
    node = parent_of(*children);
  }
  complete[node.range.begin] = node;
  return covering_slots_in(complete);
}

std::vector<int> ShardAccumulator::covering_slots() const {
  const std::lock_guard lock(mutex_);
  return covering_slots_in(complete_nodes_);
}

std::vector<ShardAccumulator::Sum> ShardAccumulator::sums() const {
  const std::vector<int> slots = covering_slots();
  const std::vector<ShardRange> nodes = tree_.covering_nodes(local_);
  std::vector<Sum> sums;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    sums.push_back({.shards = nodes[i], .slot = slots_[static_cast<std::size_t>(slots[i])]});
  return sums;
}

std::vector<int> ShardAccumulator::covering_slots_in(const Nodes& complete) const {
  std::vector<int> slots;
  for (const ShardRange& node : tree_.covering_nodes(local_)) {
    // A node that is missing here would leave shards out of the sum.
    const auto found = complete.find(node.begin);
    HOLDFAST_ASSERT(found != complete.end() && found->second.range == node);
    slots.push_back(found->second.slot);
  }
  return slots;
}

}  // namespace holdfast
