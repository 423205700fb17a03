#pragma once

// What a Value points to. An input and a call of a layer stand in the description of a model. An operation stands there
// too where the application wrote it (`a + b`), and is what a layer's build() makes. A bound node stands for an array
// that the graph has already.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/nn/value.h"

namespace holdfast {

class Layer;
struct ModelDescription;
class Operation;

// An array of a Graph.
using ArrayId = std::size_t;

// An operand that may be missing, such as the bias of a dense layer without one.
using MaybeValue = std::optional<Value>;

struct ValueNode {
  enum class Kind { input, layer, operation, bound };

  Kind kind = Kind::input;
  std::vector<MaybeValue> inputs{};
  std::vector<ValueSpec> outputs{};

  std::string name{};                     // input: its own; layer: that of the layer, with the models around it
  std::shared_ptr<const Layer> layer{};   // layer
  std::shared_ptr<const int> identity{};  // layer: equal for calls with the same weights
  std::shared_ptr<const ModelDescription> called_model{};  // layer: the nested model whose call this is part of
  bool is_frozen = false;                                  // layer: so it is in the model that it came with
  std::shared_ptr<const Operation> operation{};            // operation
  ArrayId array = 0;                                       // bound

  // For a layer or an operation: equal for those of one segment that is recomputed; null outside of any.
  std::shared_ptr<const int> recomputed_segment{};
};

// Every node is made by this function. The nodes that only it needs are freed with it one after another: a chain may be
// longer than a stack is deep.
std::shared_ptr<const ValueNode> make_node(ValueNode node);

// The segment that this thread describes now; null outside of any.
const std::shared_ptr<const int>& current_recomputed_segment();

// The nodes that `outputs` need and that are not known, each after those that it needs: depth first, the first output
// and the first input first. So the order is that of the graph. The order in which a program makes nodes would depend
// on its compiler: that of the arguments of a function is not specified.
using IsKnown = std::function<bool(const std::shared_ptr<const ValueNode>& node)>;
std::vector<std::shared_ptr<const ValueNode>> nodes_in_order(const std::vector<Value>& outputs,
                                                             const IsKnown& is_known);

// Applies an operation. Throws Error{invalid_argument} for operands that it cannot take.
std::vector<Value> apply(std::shared_ptr<const Operation> operation, std::vector<MaybeValue> inputs);
// The only output of an operation that has one.
Value apply_one(std::shared_ptr<const Operation> operation, std::vector<MaybeValue> inputs);

}  // namespace holdfast
