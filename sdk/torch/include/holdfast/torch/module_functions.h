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

// A number that is reported besides the loss. Like a loss it is a mean over samples, so that the shards of a batch add
// up:
//
//   .metrics = {{.name = "accuracy", .function = [](const auto& outputs, const auto& batch) {
//     return outputs[0].argmax(1).eq(batch.target()).to(torch::kFloat);
//   }}}
struct Metric {
  std::string name;         // "accuracy"
  OutputFunction function;  // called without gradients
};

// TrainableOptions of any module: what AnyTrainableModule is made of. The functions get the module without its class,
// and TrainableModule casts it back, so that the sources of the library need not know any application's class. Options
// say there what they mean; here stands only what is different.
struct ModuleFunctions {
  // Makes a new module each time. Missing if the class has no constructor without arguments and the application gave no
  // function; AnyTrainableModule refuses that.
  std::function<std::shared_ptr<::torch::nn::Module>()> make_module;
  // Calls a module that make_module() made. Missing if the class has no forward() of one tensor, and refused likewise.
  std::function<Outputs(::torch::nn::Module& module, const Batch& batch)> forward;
  OutputFunction loss;             // what is minimised
  std::vector<Metric> metrics;     // reported besides the loss
  std::vector<ArraySpec> inputs;   // of a sample
  std::vector<ArraySpec> targets;  // of a sample
  // Either this or `optimizer` is set: an optimizer of LibTorch is made for the parameters of one module, and thus by a
  // function.
  std::function<std::unique_ptr<::torch::optim::Optimizer>(::torch::nn::Module&)> make_optimizer;
  // An optimizer of Holdfast's needs no module, since it updates arrays.
  std::shared_ptr<const Optimizer> optimizer;
  std::optional<LearningRate> learning_rate;  // see TrainableOptions
  GradientClipping clipping;                  // see TrainableOptions
  bool draws = true;                          // see TrainableOptions
  std::string description;                    // see TrainableOptions
};

}  // namespace holdfast::torch
