#pragma once

// A weight of a layer as a value between layers. It stands in models and files as an operation with one input: what a
// call of the layer gives. Only lowering knows the array of the weight, so nothing here computes.

#include "nn/graph/operation.h"

namespace holdfast {

class WeightOperation final : public Operation {
 public:
  // `weight` is the name that the layer gave to parameter() or buffer(): "kernel".
  explicit WeightOperation(std::string weight) : weight_(std::move(weight)) {}

  const std::string& weight() const { return weight_; }

  std::string name() const override { return "weight"; }
  bool takes_integers() const override { return true; }
  // Throws Error{unsupported}: the shape is known to the layer that made the input.
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override;
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;
  void write_config(ConfigWriter& config) const override;
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override;

 private:
  const std::string weight_;
};

}  // namespace holdfast
