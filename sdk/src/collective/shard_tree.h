#pragma once

// The one order in which the sums of shards are added. Floating-point addition is not associative, so a training gives
// the same bits on any number of replicas only if this order never changes.
//
// The order is a binary tree over the shards [0, S). The left child of a node over n >= 2 shards has the first 2^k of
// them, where 2^k is the largest power of two below n; the right child has the rest. S = 6:
//
//               [0,6)
//          +------+------+
//        [0,4)         [4,6)
//      +---+---+       +-+-+
//    [0,2)   [2,4)     4   5
//    +-+-+   +-+-+
//    0   1   2   3
//
// The tree depends on S alone. A rank that computes the shards [begin, end) adds what lies below its covering nodes,
// which are the largest nodes within that range. With ranks of [0,4) and [4,6) each sends one partial sum; a rank of
// [1,4) has two covering nodes, 1 and [2,4).
//
// The split at a power of two has two uses. Adding shards one after another, as a binary counter carries, follows the
// tree, so few slots are needed. And a rank with an aligned power of two of shards sends a single partial sum.
// See docs/decisions/sums.md.

#include <cstdint>
#include <optional>
#include <utility>
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

  // The fewest nodes of the tree that together make up `range`, from left to right.
  std::vector<ShardRange> covering_nodes(ShardRange range) const;

  // The two children of a node of at least two shards, the left one first.
  static std::pair<ShardRange, ShardRange> children(ShardRange node);

  // Where each of `shards` shards is cut into `parts`: the largest divisor of `parts` such that all groups of so many
  // consecutive parts are nodes of the tree over all parts. Without other groups the tree over the groups has the same
  // order. So a group may be added before anything else sees it.
  static int parts_of_a_node(int shards, int parts);

  // The other child of the node's parent; nothing for the root. Asserts that `node` is a node of the tree.
  std::optional<ShardRange> sibling(ShardRange node) const;

 private:
  int shards_;
};

// Adding in the tree's order as the program of a stack machine: `push` pushes the next leaf, `add` replaces the two
// topmost entries by their sum. CPUs and GPUs run the same program.
enum class SumInstruction : std::uint8_t { push, add };

// The program that adds `leaves` up to the root. The leaves are the covering nodes of all ranks, in rank order.
std::vector<SumInstruction> sum_program(const ShardTree& tree, const std::vector<ShardRange>& leaves);
// The same up to `node`, of leaves that make it up. The sum of several nodes, added on, has the bits of the whole tree.
std::vector<SumInstruction> sum_program(ShardRange node, const std::vector<ShardRange>& leaves);

}  // namespace holdfast
