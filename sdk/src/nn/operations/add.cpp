// Differentiation adds gradients with these operations. Their operands have equal specs, so nothing is broadcast.

#include "nn/graph/operation.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

std::size_t floats_of(const KernelMaker& maker) {
  // Gradients are f32, with samples or without.
  const ValueSpec& spec = *maker.inputs[0];
  return static_cast<std::size_t>((spec.has_samples ? maker.samples : 1) * spec.shape.element_count());
}

class AddOperation final : public Operation {
 public:
  std::string name() const override { return "add"; }
  bool is_sample_wise() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    // Both are gradients of one array.
    HOLDFAST_ASSERT(*inputs[0] == *inputs[1]);
    return {*inputs[0]};
  }
  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::optional<ElementPart> element_part() const override {
    return ElementPart{.function = compute::ElementFunction::add, .constants = {std::nullopt, std::nullopt}};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    return {request.output_gradients[0], request.output_gradients[0]};
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel(
        [&memory = maker.backend.memory(), floats = floats_of(maker)](const KernelArrays& arrays) {
          const std::span<float> sum(arrays.output(0), floats);
          // A plan may give the sum the memory of the first operand, and then only the second one is read.
          if (arrays.input(0) != arrays.output(0)) memory.copy({arrays.input(0), floats}, sum);
          memory.add({arrays.input(1), floats}, sum);
        });
  }
};

// It is not a view: it exists to give a gradient memory of its own.
class CopyOperation final : public Operation {
 public:
  std::string name() const override { return "copy"; }
  bool is_sample_wise() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    return {request.output_gradients[0]};
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel(
        [&memory = maker.backend.memory(), floats = floats_of(maker)](const KernelArrays& arrays) {
          memory.copy({arrays.input(0), floats}, {arrays.output(0), floats});
        });
  }
};

}  // namespace

Value add(const Value& a, const Value& b) {
  return apply_one(std::make_shared<const AddOperation>(), {a, b});
}

Value copy(const Value& input) {
  return apply_one(std::make_shared<const CopyOperation>(), {input});
}

}  // namespace holdfast
