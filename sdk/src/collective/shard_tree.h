#pragma once

// The one order in which per-shard sums are added: a binary tree over the shards [0, S). A node over n >= 2 shards has
// as left child its first 2^k shards with 2^k the largest power of two below n, and as right child the rest. The tree
// depends on S alone, so it gives the same bits however the shards are dealt to replicas.

#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast {

// Shards [begin, end).
struct ShardRange {
  int begin = 0;
  int end = 0;

  int count() const { return end - begin; }
  bool contains(ShardRange other) const { return begin <= other.begin && other.end <= end; }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

class ShardTree {
 public:
  // Asserts shards > 0.
  explicit ShardTree(int shards);

  int shards() const { return shards_; }

  // The fewest nodes of the tree that make up `range`, from left to right.
  std::vector<ShardRange> covering_nodes(ShardRange range) const;

  // The other child of the node's parent; nothing for the root. Asserts that `node` is a node.
  std::optional<ShardRange> sibling(ShardRange node) const;

 private:
  int shards_;
};

// Adds leaves in the tree's order as a stack machine would: `push` takes the next leaf, `add` replaces the two topmost
// by their sum.
enum class SumInstruction : std::uint8_t { push, add };

// The program that adds the covering nodes of all ranks, in rank order, up to the root.
std::vector<SumInstruction> sum_program(const ShardTree& tree, const std::vector<ShardRange>& leaves);

}  // namespace holdfast
