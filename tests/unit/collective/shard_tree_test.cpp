// Programs are compared as text, in which parentheses show the order of additions.

#include "collective/shard_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collective/shard_assignment.h"

namespace holdfast {
namespace {

std::vector<ShardRange> single_shards(ShardRange range) {
  std::vector<ShardRange> singles;
  for (int shard = range.begin; shard < range.end; ++shard) singles.push_back({shard, shard + 1});
  return singles;
}

// The additions of the program as text that shows their order: "((0+1)+2)".
std::string written_out(const std::vector<SumInstruction>& program, const std::vector<std::string>& leaves) {
  std::vector<std::string> stack;
  std::size_t next_leaf = 0;
  for (const SumInstruction instruction : program) {
    if (instruction == SumInstruction::push) {
      stack.push_back(leaves.at(next_leaf++));
      continue;
    }
    const std::string right = stack.back();
    stack.pop_back();
    stack.back() = fmt::format("({}+{})", stack.back(), right);
  }
  EXPECT_EQ(stack.size(), 1U);
  return stack.at(0);
}

std::string order_of(const ShardTree& tree) {
  std::vector<std::string> names;
  for (int shard = 0; shard < tree.shards(); ++shard) names.push_back(std::to_string(shard));
  return written_out(sum_program(tree, single_shards({0, tree.shards()})), names);
}

// The position of the node's sum in the text of the whole tree: the balanced part that begins with its first shard and
// has as many shards.
std::string subtree_text(const std::string& whole, ShardRange node) {
  if (node.count() == 1) return std::to_string(node.begin);
  for (std::size_t open = whole.find('('); open != std::string::npos; open = whole.find('(', open + 1)) {
    std::size_t close = open;
    int depth = 0;
    do {
      depth += whole[close] == '(' ? 1 : whole[close] == ')' ? -1 : 0;
    } while (++close, depth > 0);
    const std::string part = whole.substr(open, close - open);
    const int first = std::stoi(part.substr(part.find_first_of("0123456789")));
    if (first == node.begin && std::count(part.begin(), part.end(), '+') + 1 == node.count()) return part;
  }
  ADD_FAILURE() << "[" << node.begin << ", " << node.end << ") is not a node of " << whole;
  return "";
}

}  // namespace

TEST(ShardTree, TakesTheLargestPowerOfTwoToTheLeft) {
  EXPECT_EQ(order_of(ShardTree(1)), "0");
  EXPECT_EQ(order_of(ShardTree(2)), "(0+1)");
  EXPECT_EQ(order_of(ShardTree(3)), "((0+1)+2)");
  EXPECT_EQ(order_of(ShardTree(4)), "((0+1)+(2+3))");
  EXPECT_EQ(order_of(ShardTree(7)), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(ShardTree, IsTheSameForAnyAssignmentOfShards) {
  for (int shards = 1; shards <= 33; ++shards) {
    const ShardTree tree(shards);
    const std::string expected = order_of(tree);
    for (int replicas = 1; replicas <= shards; ++replicas) {
      const std::vector<ShardRange> nodes = ShardAssignment::even(shards, replicas).covering_nodes();

      std::vector<std::string> leaves;
      for (const ShardRange& node : nodes) leaves.push_back(subtree_text(expected, node));

      EXPECT_EQ(written_out(sum_program(tree, nodes), leaves), expected)
          << shards << " shards, " << replicas << " replicas";
    }
  }
}

TEST(ShardTree, NamesTheOtherChildOfTheParent) {
  const ShardTree tree(5);

  EXPECT_EQ(tree.sibling({0, 5}), std::nullopt);
  EXPECT_EQ(tree.sibling({0, 4}), (ShardRange{4, 5}));
  EXPECT_EQ(tree.sibling({4, 5}), (ShardRange{0, 4}));
  EXPECT_EQ(tree.sibling({2, 3}), (ShardRange{3, 4}));
}

// With the text of each group in place of its leaf, the tree over the groups is the tree over all parts.
TEST(ShardTree, HasGroupsOfPartsForLeaves) {
  for (int shards = 1; shards <= 12; ++shards) {
    for (int parts = 1; parts <= 12; ++parts) {
      const int together = ShardTree::parts_of_a_node(shards, parts);
      ASSERT_EQ(parts % together, 0);
      const ShardTree groups(shards * parts / together);
      const std::string expected = order_of(ShardTree(shards * parts));
      std::vector<ShardRange> nodes;
      std::vector<std::string> leaves;
      for (int group = 0; group < groups.shards(); ++group) {
        nodes.push_back({group, group + 1});
        leaves.push_back(subtree_text(expected, {group * together, (group + 1) * together}));
      }

      EXPECT_EQ(written_out(sum_program(groups, nodes), leaves), expected) << shards << " shards of " << parts;
    }
  }
  EXPECT_EQ(ShardTree::parts_of_a_node(1, 7), 7);
  EXPECT_EQ(ShardTree::parts_of_a_node(3, 8), 8);
  EXPECT_EQ(ShardTree::parts_of_a_node(3, 12), 4);
}

TEST(ShardTree, CoversARankWithOneNodeWhereTheCountsArePowersOfTwo) {
  EXPECT_EQ(ShardAssignment::even(16, 4).covering_nodes().size(), 4U);
}

}  // namespace holdfast
