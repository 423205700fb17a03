#include "nn/graph/value_node.h"

#include <fmt/format.h>

#include <atomic>

#include "holdfast/base/error.h"
#include "nn/graph/operation.h"

namespace holdfast {

const ValueSpec& Value::spec() const {
  return node_->outputs[output_];
}

void Operation::write_config(ConfigWriter&) const {
  throw Error(
      ErrorCode::unsupported,
      fmt::format("operation \"{}\" cannot stand in a model by itself; use it in the build() of a layer", name()));
}

std::shared_ptr<const ValueNode> make_node(ValueNode node) {
  // Only the order within one description matters, and one thread makes a description.
  static std::atomic<std::uint64_t> nodes_made{0};
  node.number = nodes_made.fetch_add(1, std::memory_order_relaxed);
  return std::make_shared<const ValueNode>(std::move(node));
}

std::vector<Value> apply(std::shared_ptr<const Operation> operation, std::vector<MaybeValue> inputs) {
  std::vector<std::optional<ValueSpec>> specs;
  for (const MaybeValue& value : inputs) specs.push_back(value ? std::optional(value->spec()) : std::nullopt);
  ValueNode node = {.kind = ValueNode::Kind::operation, .inputs = std::move(inputs)};
  node.outputs = operation->outputs(specs);
  node.operation = std::move(operation);
  const auto made = make_node(std::move(node));
  std::vector<Value> values;
  for (std::size_t output = 0; output < made->outputs.size(); ++output) values.emplace_back(made, output);
  return values;
}

Value apply_one(std::shared_ptr<const Operation> operation, std::vector<MaybeValue> inputs) {
  std::vector<Value> values = apply(std::move(operation), std::move(inputs));
  HOLDFAST_ASSERT(values.size() == 1);
  return values.front();
}

}  // namespace holdfast
