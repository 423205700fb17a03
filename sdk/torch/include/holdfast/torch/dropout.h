#pragma once

// Dropout with masks that do not depend on how a batch is cut.
//
//   dropout = register_module("dropout", holdfast::torch::Dropout(0.1));
//
// torch::nn::Dropout draws from the generator of the process, one number after another, so its masks change with the
// number of shards. This module's mask is a function of (seed of the run, step, position of the sample in the global
// batch, how many such masks forward() drew before). So masks do not depend on the number of shards and replicas, and
// shards of a process are computed at once (TrainableModule, `.draws = false`).

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>

namespace holdfast::torch {

// Zeroes each element with probability `rate` and scales the others by 1 / (1 - rate). In eval() it returns its input.
// The first axis of the input counts the samples.
class DropoutImpl : public ::torch::nn::Cloneable<DropoutImpl> {
 public:
  // Throws Error{invalid_argument} unless 0 <= rate < 1.
  explicit DropoutImpl(double rate = 0.5);

  // Does nothing, since a dropout has no state.
  void reset() override {}
  // Throws Error{invalid_argument} in train() outside of a step of a TrainableModule, where there is no (seed, step,
  // sample), and for an input whose first axis is not as long as there are samples.
  at::Tensor forward(const at::Tensor& input);
  // "holdfast::torch::Dropout(rate=0.1)".
  void pretty_print(std::ostream& stream) const override;

  // The probability with which an element becomes zero.
  double rate() const { return rate_; }

 private:
  double rate_;
};

// The holder of a DropoutImpl, as LibTorch's modules have one.
class Dropout : public ::torch::nn::ModuleHolder<DropoutImpl> {
 public:
  using ::torch::nn::ModuleHolder<DropoutImpl>::ModuleHolder;
  // As LibTorch's own holders name it.
  using Impl = DropoutImpl;
};

}  // namespace holdfast::torch
