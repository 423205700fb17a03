// The builder remembers each node that it has appended. So a value with several readers becomes one operation, and the
// kernels of a layer run once for each call.

#include "nn/graph/graph_builder.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

ArrayId GraphBuilder::add_array(GraphArray::Source source, std::size_t index, const ValueSpec& spec) {
  graph_.arrays.push_back({.spec = spec, .source = source, .index = index});
  return graph_.arrays.size() - 1;
}

Value GraphBuilder::bind(ArrayId array) const {
  // A bound node counts as known in append(), so that a walk through the nodes ends at it. Without this, the operations
  // of earlier layers would be appended again.
  ValueNode node = {.kind = ValueNode::Kind::bound};
  node.outputs = {graph_.spec(array)};
  node.array = array;
  return {make_node(std::move(node)), 0};
}

ArrayId GraphBuilder::array_of(const Value& value) const {
  if (value.node()->kind == ValueNode::Kind::bound) return value.node()->array;
  return appended_.at(value.node())[value.output()];
}

void GraphBuilder::append_node(const std::shared_ptr<const ValueNode>& node) {
  // The inputs of a layer and its weights are bound already, so only operations are left. A build() that calls another
  // layer, or uses a value from elsewhere, brings other nodes here.
  if (node->kind != ValueNode::Kind::operation) {
    if (node->kind == ValueNode::Kind::layer) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("its build() uses a call of a layer ({}); describe the layer with functions of its inputs "
                      "and weights, or make a Model of layers and call that in its place",
                      node->layer->kind()));
    }
    throw Error(ErrorCode::invalid_argument,
                "its build() uses an input of a model that is not its own input; describe the layer with functions of "
                "its inputs and weights");
  }
  GraphOperation operation = {.operation = node->operation, .inputs = {}, .outputs = {}, .segment = segment_};
  // A missing operand keeps its place, because kernels find their arrays by position.
  for (const MaybeValue& input : node->inputs) operation.inputs.push_back(input ? array_of(*input) : kNoArray);
  for (const ValueSpec& spec : node->outputs) {
    // Plans add up sizes of arrays, also of those within a layer.
    if (spec.shape.element_count() > kMaximumElements) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("it computes an array of the shape {}, which has more than 2^40 elements",
                              spec.shape.to_string()));
    }
    operation.outputs.push_back(add_array(GraphArray::Source::operation, graph_.operations.size(), spec));
  }
  appended_[node] = operation.outputs;
  graph_.operations.push_back(std::move(operation));
}

ArrayId GraphBuilder::append(const Value& value) {
  const auto is_known = [this](const std::shared_ptr<const ValueNode>& node) {
    return node->kind == ValueNode::Kind::bound || appended_.contains(node);
  };
  for (const auto& node : nodes_in_order({value}, is_known)) append_node(node);
  return array_of(value);
}

}  // namespace holdfast
