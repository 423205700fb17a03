// These functions have kernels of their own on each back end. All others are made of functions of elements.
// docs/decisions/layers.md

#include "nn/graph/operation.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

class ActivationForward final : public Operation, public std::enable_shared_from_this<ActivationForward> {
 public:
  explicit ActivationForward(Activation activation) : activation_(activation) {}

  std::string name() const override { return std::string(holdfast::name(activation_)); }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;
  // The name says all: an activation has no options.
  void write_config(ConfigWriter&) const override {}

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel([object = make_object(maker, {})](const KernelArrays& arrays) {
      object->forward(arrays.input(0), arrays.output(0));
    });
  }
  // The backward pass has an object of its own, since it depends on its arrays alone. In a file, one operation may be
  // called for values of several shapes, so that no object fits all of its calls.
  std::shared_ptr<compute::ActivationOperation> make_object(const KernelMaker& maker, compute::Use use) const {
    return maker.backend.activation({.activation = activation_, .rows = maker.rows(0), .channels = maker.channels(0)},
                                    use);
  }

 private:
  const Activation activation_;
};

// Inputs: the output or the input of the forward pass, whichever the derivative is computed from; output gradient.
class ActivationBackward final : public Operation {
 public:
  explicit ActivationBackward(std::shared_ptr<const ActivationForward> forward) : forward_(std::move(forward)) {}

  std::string name() const override { return "gradient of " + forward_->name(); }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    constexpr compute::Use kBackward = {.training = true, .input_gradient = true};
    return make_function_kernel([object = forward_->make_object(maker, kBackward)](const KernelArrays& arrays) {
      object->backward(arrays.input(0), arrays.input(1), arrays.output(0));
    });
  }

 private:
  const std::shared_ptr<const ActivationForward> forward_;
};

std::vector<MaybeValue> ActivationForward::gradient(const GradientRequest& request) const {
  // Where the output is enough, the memory of the input is free after the forward pass.
  const MaybeValue kept = compute::is_differentiated_by_output(activation_) ? request.outputs[0] : request.inputs[0];
  const auto backward = std::make_shared<const ActivationBackward>(shared_from_this());
  return {apply_one(backward, {kept, request.output_gradients[0]})};
}

}  // namespace

std::shared_ptr<const Operation> read_activation_operation(Activation activation) {
  return std::make_shared<const ActivationForward>(activation);
}

Value activation(const Value& input, Activation activation) {
  if (activation == Activation::linear) return input;
  return apply_one(std::make_shared<const ActivationForward>(activation), {input});
}

}  // namespace holdfast
