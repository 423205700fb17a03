// Works on a finished graph, after differentiation and recomputation: so all other operations stay as they are, in
// their order, and the gradient of a table that ids read too is added up as before. Arrays keep their numbers. Those
// that the product and its backward pass made become arrays of the caller. docs/decisions/losses.md

#include "nn/program/last_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/base/error.h"
#include "nn/operations/product_operation.h"

namespace holdfast {
namespace {

class ProductCut {
 public:
  explicit ProductCut(const Graph& graph) : graph_(graph) {}
  GraphBeforeProduct run();

 private:
  std::size_t find_product() const;
  std::size_t find_backward() const;
  std::vector<std::size_t> readers(ArrayId array) const;
  LastProduct described() const;
  void give_to_caller(ArrayId array, std::size_t index);
  void take_parameter_gradients();
  void remove_operations();

  const Graph& graph_;
  Graph result_;
  std::size_t product_ = kNoOperation;
  std::size_t backward_ = kNoOperation;  // that of the product; kNoOperation: nothing before it is trained
  LastProduct last_;
};

[[noreturn]] void refuse_output(const std::string& found) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(".positions_at_once needs a model of one output that is a product of each position: of a Dense "
                  "layer without an activation, or of reverse() of a ReversibleEmbedding without a cap; {}. "
                  "Leave positions_at_once out, or change the end of the model",
                  found));
}

std::vector<std::size_t> ProductCut::readers(ArrayId array) const {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    const std::vector<ArrayId>& inputs = graph_.operations[index].inputs;
    if (std::ranges::find(inputs, array) != inputs.end()) found.push_back(index);
  }
  return found;
}

std::size_t ProductCut::find_product() const {
  if (graph_.outputs.size() != 1) refuse_output(fmt::format("this one has {} outputs", graph_.outputs.size()));
  const ArrayId output = graph_.outputs.front();
  const GraphArray& array = graph_.arrays[output];
  if (array.source != GraphArray::Source::operation) refuse_output("this one hands on an input");
  // An activation or a cap would be an operation after the product, and the maker of the output then.
  const Operation& maker = *graph_.operations[array.index].operation;
  if (dynamic_cast<const ProductOperation<compute::DenseOperation>*>(&maker) == nullptr) {
    refuse_output(fmt::format("this one ends with the operation \"{}\"", maker.name()));
  }
  if (!graph_.spec(graph_.operations[array.index].inputs[0]).has_samples) {
    refuse_output("the product of this one has no samples");
  }
  if (!readers(output).empty()) refuse_output("something else in this one reads the product");
  return array.index;
}

std::size_t ProductCut::find_backward() const {
  for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
    if (graph_.arrays[array].source != GraphArray::Source::output_gradient) continue;
    const std::vector<std::size_t> found = readers(array);
    if (found.empty()) return kNoOperation;
    // Only the product reads its scores, so its backward pass alone reads their gradient.
    HOLDFAST_ASSERT(found.size() == 1 && graph_.operations[found.front()].outputs.size() == 3);
    return found.front();
  }
  return kNoOperation;
}

LastProduct ProductCut::described() const {
  const GraphOperation& product = graph_.operations[product_];
  const Shape& kernel = graph_.spec(product.inputs[1]).shape;
  LastProduct last = {.rows = graph_.spec(product.inputs[0]).shape.element_count() / kernel[0],
                      .inputs = kernel[0],
                      .outputs = kernel[1],
                      .has_bias = product.inputs.size() > 2 && product.inputs[2] != kNoArray};
  if (backward_ == kNoOperation) return last;
  // What was not asked for has no elements (kNotComputed).
  const auto is_wanted = [&](std::size_t output) {
    return graph_.spec(graph_.operations[backward_].outputs[output]).shape.element_count() > 0;
  };
  last.has_input_gradient = is_wanted(0);
  last.has_weight_gradients = is_wanted(1);
  return last;
}

void ProductCut::give_to_caller(ArrayId array, std::size_t index) {
  result_.arrays[array].source = GraphArray::Source::output_gradient;
  result_.arrays[array].index = index;
}

// An array of the caller has no place among the gradients that operations write, so the caller writes it there at once.
void ProductCut::take_parameter_gradients() {
  if (backward_ == kNoOperation) return;
  const std::vector<ArrayId>& made = graph_.operations[backward_].outputs;
  for (std::size_t entry = 0; entry < result_.parameter_gradients.size(); ++entry) {
    ArrayId& gradient = result_.parameter_gradients[entry];
    if (gradient == kNoArray) continue;
    const ArrayId memory = graph_.memory_of(gradient);
    if (std::ranges::find(made, memory) == made.end()) continue;
    // A view of the gradient is another array, which would have to be made from what the caller writes.
    if (gradient != memory) refuse_output("the kernel of this one is a parameter under another shape");
    // Outputs of a backward pass are the gradients of input, kernel and bias.
    (memory == made[1] ? last_.kernel_entry : last_.bias_entry) = entry;
    gradient = kNoArray;
  }
}

void ProductCut::remove_operations() {
  std::vector<std::size_t> moved;  // by operation
  result_.operations.clear();
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    if (index == graph_.first_backward) result_.first_backward = result_.operations.size();
    moved.push_back(result_.operations.size());
    if (index == product_ || index == backward_) continue;
    GraphOperation operation = graph_.operations[index];
    if (operation.repeats != kNoOperation) {
      // The backward pass reads no scores, so none are ever computed again.
      HOLDFAST_ASSERT(operation.repeats != product_);
      // It repeats an earlier operation, whose new place is known.
      operation.repeats = moved[operation.repeats];
    }
    for (const ArrayId output : operation.outputs) result_.arrays[output].index = result_.operations.size();
    result_.operations.push_back(std::move(operation));
  }
  // A graph for inference has no backward pass, so the loop never meets its first operation.
  if (graph_.first_backward == graph_.operations.size()) result_.first_backward = result_.operations.size();
}

GraphBeforeProduct ProductCut::run() {
  // All that describes the product is read from the whole graph, before its arrays lose their shapes here.
  product_ = find_product();
  backward_ = find_backward();
  last_ = described();
  result_ = graph_;
  take_parameter_gradients();
  remove_operations();
  // The scores and their gradient. Nothing reads them, so that they take no memory.
  for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
    const bool is_gradient = graph_.arrays[array].source == GraphArray::Source::output_gradient;
    if (!is_gradient && array != graph_.outputs.front()) continue;
    give_to_caller(array, 0);
    result_.arrays[array].spec = kNotComputed;
  }
  if (backward_ != kNoOperation) {
    const std::vector<ArrayId>& made = graph_.operations[backward_].outputs;
    for (std::size_t output = 0; output < made.size(); ++output) give_to_caller(made[output], output);
  }
  // The operands of the product are what the caller reads of this graph.
  result_.outputs.clear();
  for (const ArrayId input : graph_.operations[product_].inputs) {
    if (input != kNoArray) result_.outputs.push_back(input);
  }
  return {.graph = std::move(result_), .product = last_};
}

}  // namespace

GraphBeforeProduct without_last_product(const Graph& graph) {
  return ProductCut(graph).run();
}

}  // namespace holdfast
