#include "nn/graph/graph_builder.h"

#include <algorithm>
#include <unordered_set>

#include "holdfast/base/error.h"

namespace holdfast {

ArrayId GraphBuilder::add_array(GraphArray::Source source, std::size_t index, const ValueSpec& spec) {
  graph_.arrays.push_back({.spec = spec, .source = source, .index = index});
  return graph_.arrays.size() - 1;
}

Value GraphBuilder::bind(ArrayId array) const {
  return {make_node({.kind = ValueNode::Kind::bound, .outputs = {graph_.spec(array)}, .array = array}), 0};
}

ArrayId GraphBuilder::array_of(const Value& value) const {
  if (value.node()->kind == ValueNode::Kind::bound) return value.node()->array;
  return appended_.at(value.node())[value.output()];
}

void GraphBuilder::append_node(const std::shared_ptr<const ValueNode>& node) {
  HOLDFAST_ASSERT(node->kind == ValueNode::Kind::operation);
  GraphOperation operation = {.operation = node->operation, .inputs = {}, .outputs = {}};
  for (const MaybeValue& input : node->inputs) operation.inputs.push_back(input ? array_of(*input) : kNoArray);
  for (const ValueSpec& spec : node->outputs) {
    operation.outputs.push_back(add_array(GraphArray::Source::operation, graph_.operations.size(), spec));
  }
  appended_[node] = operation.outputs;
  graph_.operations.push_back(std::move(operation));
}

ArrayId GraphBuilder::append(const Value& value) {
  std::vector<std::shared_ptr<const ValueNode>> missing;
  std::unordered_set<const ValueNode*> seen;
  std::vector<std::shared_ptr<const ValueNode>> to_visit = {value.node()};
  while (!to_visit.empty()) {
    const std::shared_ptr<const ValueNode> node = std::move(to_visit.back());
    to_visit.pop_back();
    if (node->kind == ValueNode::Kind::bound || appended_.contains(node) || !seen.insert(node.get()).second) continue;
    missing.push_back(node);
    for (const MaybeValue& input : node->inputs) {
      if (input) to_visit.push_back(input->node());
    }
  }
  std::sort(missing.begin(), missing.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  for (const auto& node : missing) append_node(node);
  return array_of(value);
}

}  // namespace holdfast
