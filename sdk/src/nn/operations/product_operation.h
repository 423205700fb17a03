#pragma once

// Dense and convolution share this: an input, a kernel and perhaps a bias, and one object of the back end that computes
// both passes. One backward operation gives the gradients of all three. matmul() has no third input at all.

#include "nn/graph/operation.h"

namespace holdfast {

template <class Object>
class ProductBackward;

// `Object` is compute::DenseOperation or compute::ConvolutionOperation.
template <class Object>
class ProductOperation : public Operation, public std::enable_shared_from_this<ProductOperation<Object>> {
 public:
  // The object computes both passes for the samples and specs of `maker`. Its backward pass is prepared as maker.use
  // says.
  virtual std::unique_ptr<Object> make_object(const KernelMaker& maker) const = 0;

  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    const bool has_third = request.inputs.size() > 2;
    std::vector<bool> needed = request.needed;
    needed.resize(3);
    const auto backward = std::make_shared<const ProductBackward<Object>>(this->shared_from_this(), std::move(needed));
    const std::vector<Value> gradients =
        apply(backward, {request.inputs[0], request.inputs[1], has_third ? request.inputs[2] : std::nullopt,
                         request.output_gradients[0]});
    // One backward operation computes all gradients, because those of kernel and bias come from one call of a library.
    std::vector<MaybeValue> by_input(request.inputs.size());
    for (std::size_t input = 0; input < by_input.size(); ++input) {
      if (request.needed[input]) by_input[input] = gradients[input];
    }
    return by_input;
  }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    // The backward operation finds the object by this operation, and may use what the forward pass has kept in it.
    return make_function_kernel([object = maker.share(*this, make_object(maker))](const KernelArrays& arrays) {
      const float* const bias = arrays.inputs().size() > 2 ? arrays.input(2) : nullptr;
      object->forward(arrays.input(0), arrays.input(1), bias, arrays.output(0));
    });
  }
};

// Inputs: input, kernel, bias, output gradient. Outputs: the gradients of the first three.
template <class Object>
class ProductBackward final : public Operation {
 public:
  ProductBackward(std::shared_ptr<const ProductOperation<Object>> forward, std::vector<bool> needed)
      : forward_(std::move(forward)), needed_(std::move(needed)) {}

  std::string name() const override { return "gradients of " + forward_->name(); }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    // An output that nobody asked for keeps its place, since kernels find arrays by position.
    std::vector<ValueSpec> specs(3, kNotComputed);
    if (needed_[0]) specs[0] = *inputs[0];
    // One call of a library writes the gradients of kernel and bias. So both need memory where one of them is wanted.
    for (const std::size_t weight : {1, 2}) {
      if ((needed_[1] || needed_[2]) && inputs[weight]) specs[weight] = *inputs[weight];
    }
    return specs;
  }

  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel(
        [object = maker.made_by<Object>(*forward_), needed = needed_](const KernelArrays& arrays) {
          // Gradients of the kernel and of the bias come from one call.
          if (needed[1] || needed[2]) {
            object->backward_weights(arrays.input(0), arrays.input(3), arrays.output(1), arrays.output(2));
          }
          if (needed[0]) object->backward_input(arrays.input(1), arrays.input(3), arrays.output(0));
        });
  }

 private:
  const std::shared_ptr<const ProductOperation<Object>> forward_;
  const std::vector<bool> needed_;
};

}  // namespace holdfast
