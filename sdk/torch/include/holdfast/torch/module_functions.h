#pragma once

// The module of an application without its type. TrainableModule makes these; applications never name them.

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/core/row_layout.h"
#include "holdfast/optim/gradient_clipping.h"
#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/torch/batch.h"

namespace holdfast::torch {

// A loss or metric: a scalar, which is the mean over the samples of the shard, or a tensor [samples] with a value for
// each. Only the latter can be weighted by sample.
using OutputFunction = std::function<at::Tensor(const Outputs& outputs, const Batch& batch)>;

// A number that is reported besides the loss.
struct Metric {
  std::string name;         // "accuracy"
  OutputFunction function;  // called without gradients
};

// TrainableOptions of any module.
struct ModuleFunctions {
  std::function<std::shared_ptr<::torch::nn::Module>()> make_module;                // a new module
  std::function<Outputs(::torch::nn::Module& module, const Batch& batch)> forward;  // its outputs
  OutputFunction loss;                                                              // see OutputFunction
  std::vector<Metric> metrics;                                                      // reported besides the loss
  std::vector<ArraySpec> inputs;                                                    // of a sample
  std::vector<ArraySpec> targets;                                                   // of a sample
  std::function<std::unique_ptr<::torch::optim::Optimizer>(::torch::nn::Module&)> make_optimizer;  // or else:
  std::shared_ptr<const Optimizer> optimizer;                                                      // one of Holdfast's
  std::optional<LearningRate> learning_rate;  // see TrainableOptions
  GradientClipping clipping;                  // see TrainableOptions
  bool draws = true;                          // see TrainableOptions
  std::string description;                    // see TrainableOptions
};

}  // namespace holdfast::torch
