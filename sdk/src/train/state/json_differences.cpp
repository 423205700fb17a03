#include "train/state/json_differences.h"

#include <map>
#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

using Leaves = std::map<std::string, const nlohmann::json*>;

// By their pointers, such as "/optimizer/learning_rate". An empty object or list is a leaf: json::flatten() makes nulls
// of both, which then equal each other and a null.
void add_leaves(const nlohmann::json& value, const nlohmann::json::json_pointer& at, Leaves& leaves) {
  if (!value.is_structured() || value.empty()) {
    leaves[at.to_string()] = &value;
    return;
  }
  for (const auto& [key, member] : value.items()) add_leaves(member, at / key, leaves);
}

}  // namespace

std::vector<JsonDifference> differences_of(const std::string& name, const nlohmann::json& first,
                                           const nlohmann::json& second) {
  if (first == second) return {};
  if (!first.is_structured() || first.type() != second.type()) return {{name, first.dump(), second.dump()}};
  std::vector<JsonDifference> differences;
  // By the paths of leaves, so that a sentence names the one option that differs, and not two long objects.
  Leaves first_leaves;
  Leaves second_leaves;
  add_leaves(first, nlohmann::json::json_pointer(), first_leaves);
  add_leaves(second, nlohmann::json::json_pointer(), second_leaves);
  Leaves all = first_leaves;
  all.insert(second_leaves.begin(), second_leaves.end());
  for (const auto& [pointer, unused] : all) {
    const auto before = first_leaves.find(pointer);
    const auto after = second_leaves.find(pointer);
    const bool are_both_set = before != first_leaves.end() && after != second_leaves.end();
    if (are_both_set && *before->second == *after->second) continue;
    // Without quotation marks around them: a value may be any text.
    differences.push_back({name + pointer, before == first_leaves.end() ? "not set" : before->second->dump(),
                           after == second_leaves.end() ? "not set" : after->second->dump()});
  }
  return differences;
}

}  // namespace holdfast
