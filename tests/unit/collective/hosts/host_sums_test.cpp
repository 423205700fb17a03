// The sums of hosts as texts: each addition must be one of the tree over all shards.

#include "collective/hosts/host_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace holdfast {
namespace {

using Texts = std::vector<std::string>;

std::string run(const std::vector<SumInstruction>& program, const Texts& leaves) {
  Texts stack;
  std::size_t next_leaf = 0;
  for (const SumInstruction instruction : program) {
    if (instruction == SumInstruction::push) {
      stack.push_back(leaves.at(next_leaf++));
      continue;
    }
    const std::string right = stack.back();
    stack.pop_back();
    stack.back() = "(" + stack.back() + "+" + right + ")";
  }
  return stack.size() == 1 ? stack[0] : "not one sum";
}

std::string tree_text(ShardRange node) {
  if (node.count() == 1) return std::to_string(node.begin);
  const auto [left, right] = ShardTree::children(node);
  return "(" + tree_text(left) + "+" + tree_text(right) + ")";
}

Texts leaves_of_host(const ShardAssignment& assignment, const HostLayout& layout, int host) {
  Texts leaves;
  for (int rank = layout.first_rank(host); rank < layout.first_rank(host + 1); ++rank) {
    for (const ShardRange& node : ShardTree(assignment.shards()).covering_nodes(assignment.of(rank))) {
      leaves.push_back(tree_text(node));
    }
  }
  return leaves;
}

// What the host sends to the others.
Texts partials_of(const ShardAssignment& assignment, const HostLayout& layout, int host) {
  const Texts leaves = leaves_of_host(assignment, layout, host);
  Texts partials;
  for (const HostSums::Partial& partial : HostSums(assignment, layout, host).partials) {
    const auto first = leaves.begin() + static_cast<std::ptrdiff_t>(partial.first_leaf);
    partials.push_back(run(partial.program, Texts(first, first + static_cast<std::ptrdiff_t>(partial.leaves))));
  }
  return partials;
}

// The whole sum, as the host makes it from what the others sent.
std::string total_of(const ShardAssignment& assignment, const HostLayout& layout, int own_host) {
  Texts summands;
  for (int host = 0; host < layout.hosts(); ++host) {
    const Texts of_host =
        host == own_host ? leaves_of_host(assignment, layout, host) : partials_of(assignment, layout, host);
    summands.insert(summands.end(), of_host.begin(), of_host.end());
  }
  return run(HostSums(assignment, layout, own_host).total, summands);
}

// Calls `check` with every way to give `shards` shards to so many ranks, at least one to each.
void for_each_assignment(int shards, int ranks, const std::function<void(const ShardAssignment&)>& check) {
  std::vector<int> counts;
  const std::function<void(int)> give = [&](int left) {
    const int missing = ranks - static_cast<int>(counts.size());
    if (missing == 1) {
      counts.push_back(left);
      check(ShardAssignment(counts));
      counts.pop_back();
      return;
    }
    for (int count = 1; count <= left - (missing - 1); ++count) {
      counts.push_back(count);
      give(left - count);
      counts.pop_back();
    }
  };
  give(shards);
}

}  // namespace

// Every assignment of up to 10 shards to 1 to 3 hosts with 1 to 3 ranks each, in any combination.
TEST(HostSums, AddInTheTreesOrderForEveryAssignment) {
  int checked = 0;
  for_each_assignment(3, 1, [](const ShardAssignment& only) { ASSERT_EQ(only.shards(), 3); });
  std::vector<HostLayout> layouts;
  for (int a = 1; a <= 3; ++a) {
    layouts.emplace_back(std::vector<int>{a});
    for (int b = 1; b <= 3; ++b) {
      layouts.emplace_back(std::vector<int>{a, b});
      for (int c = 1; c <= 3; ++c) layouts.emplace_back(std::vector<int>{a, b, c});
    }
  }
  for (const HostLayout& layout : layouts) {
    for (int shards = layout.ranks(); shards <= 10; ++shards) {
      const std::string expected = tree_text({0, shards});
      for_each_assignment(shards, layout.ranks(), [&](const ShardAssignment& assignment) {
        for (int host = 0; host < layout.hosts(); ++host) {
          ASSERT_EQ(total_of(assignment, layout, host), expected);
        }
        ++checked;
      });
    }
  }
  EXPECT_GT(checked, 5000);
}

// What a host sends for each float of its peers' parts. One is the least.
TEST(HostSums, NeedOnePartialSumAHostWhereSharesArePowersOfTwo) {
  const auto most_partials = [](int shards, int hosts) {
    const HostLayout layout(std::vector<int>(static_cast<std::size_t>(hosts), 1));
    const HostSums sums(ShardAssignment::even(shards, hosts), layout, 0);
    return *std::max_element(sums.partials_of_host.begin(), sums.partials_of_host.end());
  };

  EXPECT_EQ(most_partials(8, 2), 1U);
  EXPECT_EQ(most_partials(12, 3), 1U);
  EXPECT_EQ(most_partials(10, 5), 1U);
  EXPECT_EQ(most_partials(48, 6), 1U);
  EXPECT_GT(most_partials(16, 3), 1U);
}

}  // namespace holdfast
