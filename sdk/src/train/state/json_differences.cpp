#include "train/state/json_differences.h"

#include <nlohmann/json.hpp>

namespace holdfast {

std::vector<JsonDifference> differences_of(const std::string& name, const nlohmann::json& first,
                                           const nlohmann::json& second) {
  if (first == second) return {};
  if (!first.is_structured() || first.type() != second.type()) return {{name, first.dump(), second.dump()}};
  std::vector<JsonDifference> differences;
  // By the paths of leaves, so that a sentence names the one option that differs, and not two long objects.
  const nlohmann::json first_leaves = first.flatten();
  const nlohmann::json second_leaves = second.flatten();
  nlohmann::json all = first_leaves;
  all.update(second_leaves);
  for (const auto& [pointer, unused] : all.items()) {
    const auto before = first_leaves.find(pointer);
    const auto after = second_leaves.find(pointer);
    const bool are_both_set = before != first_leaves.end() && after != second_leaves.end();
    if (are_both_set && *before == *after) continue;
    // Without quotation marks around them: a value may be any text.
    differences.push_back({name + pointer, before == first_leaves.end() ? "not set" : before->dump(),
                           after == second_leaves.end() ? "not set" : after->dump()});
  }
  return differences;
}

}  // namespace holdfast
