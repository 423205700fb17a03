// A node never changes after it was made, and it holds the nodes that it needs. So graphs have no cycles, and several
// threads and models may share their nodes without a lock. The order of nodes is a part of the bits of a model: it
// numbers weights and draws. docs/decisions/models.md

#include "nn/graph/value_node.h"

#include <fmt/format.h>

#include <iterator>
#include <unordered_set>

#include "holdfast/base/error.h"
#include "holdfast/nn/recompute.h"
#include "nn/graph/operation.h"

namespace holdfast {

const ValueSpec& Value::spec() const {
  return node_->outputs[output_];
}

namespace {

// Frees a node without recursion. What it held waits in a list of the outermost call, where the last holder of an
// earlier node puts what that one held, too.
struct FreeNode {
  void operator()(ValueNode* node) const {
    // A plain pointer, since nodes of static objects are freed after the objects of a thread.
    static thread_local std::vector<MaybeValue>* waiting = nullptr;
    std::vector<MaybeValue> held = std::move(node->inputs);
    delete node;
    if (waiting != nullptr) {
      std::move(held.begin(), held.end(), std::back_inserter(*waiting));
      return;
    }
    waiting = &held;
    while (!held.empty()) {
      // The value leaves the list before it is freed, because that may move the list to other memory.
      const MaybeValue freed = std::move(held.back());
      held.pop_back();
    }
    waiting = nullptr;
  }
};

}  // namespace

std::shared_ptr<const ValueNode> make_node(ValueNode node) {
  return {new ValueNode(std::move(node)), FreeNode()};
}

// Each thread describes its own models. A segment that one thread opens must not take in the layers of another thread.
static thread_local std::shared_ptr<const int> described_segment;

const std::shared_ptr<const int>& current_recomputed_segment() {
  return described_segment;
}

RecomputedSegment::RecomputedSegment() : is_outer_(described_segment == nullptr) {
  // The address identifies the segment. Nothing reads the number.
  if (is_outer_) described_segment = std::make_shared<const int>(0);
}

RecomputedSegment::~RecomputedSegment() {
  if (is_outer_) described_segment.reset();
}

// An operation that an application can write between layers overrides this. All others are details of layers, which may
// change without a change of files.
void Operation::write_config(ConfigWriter&) const {
  throw Error(
      ErrorCode::unsupported,
      fmt::format("operation \"{}\" cannot stand in a model by itself; use it in the build() of a layer", name()));
}

std::vector<std::shared_ptr<const ValueNode>> nodes_in_order(const std::vector<Value>& outputs,
                                                             const IsKnown& is_known) {
  struct Visit {
    std::shared_ptr<const ValueNode> node;
    std::size_t next_input = 0;
  };
  std::vector<std::shared_ptr<const ValueNode>> nodes;
  std::unordered_set<const ValueNode*> seen;
  // The walk does without recursion, since a graph may be deeper than a stack.
  std::vector<Visit> visits;
  const auto enter = [&](const std::shared_ptr<const ValueNode>& node) {
    // A node counts as seen when it is entered. So a node with several readers is listed once, before the first of
    // them.
    if (!is_known(node) && seen.insert(node.get()).second) visits.push_back({.node = node});
  };
  for (const Value& output : outputs) {
    enter(output.node());
    while (!visits.empty()) {
      Visit& visit = visits.back();
      if (visit.next_input < visit.node->inputs.size()) {
        // enter() may move the visits to other memory. `input` stays valid, because it lies in the node.
        const MaybeValue& input = visit.node->inputs[visit.next_input++];
        if (input) enter(input->node());
      } else {
        // All inputs of the node are listed, so the node itself can follow.
        nodes.push_back(std::move(visit.node));
        visits.pop_back();
      }
    }
  }
  return nodes;
}

static void check_type(const Operation& operation, const std::optional<ValueSpec>& spec) {
  // A kernel for floats would read the bits of a small integer as a number near 0, and no result would look wrong.
  if (!spec || spec->dtype == DType::f32 || operation.takes_integers()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} takes values of f32, not integers; write cast(x, DType::f32) first", operation.name()));
}

std::vector<Value> apply(std::shared_ptr<const Operation> operation, std::vector<MaybeValue> inputs) {
  std::vector<std::optional<ValueSpec>> specs;
  for (const MaybeValue& value : inputs) {
    specs.push_back(value ? std::optional(value->spec()) : std::nullopt);
    // An input of bf16 is f32 before the first operation.
    if (value && value->dtype() == DType::bf16) specs.back()->dtype = DType::f32;
    check_type(*operation, specs.back());
  }
  ValueNode node = {.kind = ValueNode::Kind::operation, .inputs = std::move(inputs)};
  // outputs() refuses operands that do not fit, so each node that exists has valid shapes.
  node.outputs = operation->outputs(specs);
  node.operation = std::move(operation);
  node.recomputed_segment = current_recomputed_segment();
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
