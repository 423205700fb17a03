// The tree is never built. A node is a range, and its children follow from its length, so any part of the tree can be
// found from the number of shards alone. See docs/decisions/sums.md.

#include "collective/shard_tree.h"

#include <bit>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Where the right child begins. bit_floor(n - 1) is the largest power of two below n.
int split(ShardRange node) {
  return node.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.count() - 1)));
}

// From left to right, as ranks have their shards.
void cover(ShardRange node, ShardRange range, std::vector<ShardRange>& nodes) {
  if (node.end <= range.begin || range.end <= node.begin) return;
  if (range.contains(node)) {
    nodes.push_back(node);
    return;
  }
  cover({node.begin, split(node)}, range, nodes);
  cover({split(node), node.end}, range, nodes);
}

// Children first: the program is the tree in postfix order.
void write_program(ShardRange node, const std::vector<ShardRange>& leaves, std::size_t& next_leaf,
                   std::vector<SumInstruction>& program) {
  if (next_leaf < leaves.size() && leaves[next_leaf] == node) {
    ++next_leaf;
    program.push_back(SumInstruction::push);
    return;
  }
  HOLDFAST_ASSERT(node.count() > 1);
  write_program({node.begin, split(node)}, leaves, next_leaf, program);
  write_program({split(node), node.end}, leaves, next_leaf, program);
  program.push_back(SumInstruction::add);
}

}  // namespace

ShardTree::ShardTree(int shards) : shards_(shards) {
  HOLDFAST_ASSERT(shards > 0);
}

std::vector<ShardRange> ShardTree::covering_nodes(ShardRange range) const {
  std::vector<ShardRange> nodes;
  cover({0, shards_}, range, nodes);
  return nodes;
}

std::pair<ShardRange, ShardRange> ShardTree::children(ShardRange node) {
  HOLDFAST_ASSERT(node.count() > 1);
  return {{node.begin, split(node)}, {split(node), node.end}};
}

// From the root down: a range does not say who its parent is.
// Each split is at a power of two, so ranges that begin at a multiple of a power of two stay whole down to that power.
int ShardTree::parts_of_a_node(int shards, int parts) {
  HOLDFAST_ASSERT(shards > 0 && parts > 0);
  return shards == 1 ? parts : parts & -parts;
}

std::optional<ShardRange> ShardTree::sibling(ShardRange node) const {
  ShardRange parent{0, shards_};
  if (parent == node) return std::nullopt;
  for (;;) {
    HOLDFAST_ASSERT(parent.count() > 1 && parent.contains(node));
    const ShardRange left{parent.begin, split(parent)};
    const ShardRange right{split(parent), parent.end};
    if (left == node) return right;
    if (right == node) return left;
    parent = left.contains(node) ? left : right;
  }
}

std::vector<SumInstruction> sum_program(const ShardTree& tree, const std::vector<ShardRange>& leaves) {
  return sum_program(ShardRange{0, tree.shards()}, leaves);
}

std::vector<SumInstruction> sum_program(ShardRange node, const std::vector<ShardRange>& leaves) {
  std::vector<SumInstruction> program;
  std::size_t next_leaf = 0;
  write_program(node, leaves, next_leaf, program);
  HOLDFAST_ASSERT(next_leaf == leaves.size());
  return program;
}

}  // namespace holdfast
