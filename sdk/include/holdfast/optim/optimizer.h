#pragma once

// How parameters follow their gradients. An optimizer holds only options. What it remembers from step to step lies in
// its slots: arenas with the layout of the parameters, which start as zeros and belong to the training state.
//
//   Trainer trainer(replica, model, SGD{{.learning_rate = 0.1F, .momentum = 0.9F}}, MeanSquaredError{});
//
// Optimizers are immutable; any thread may use the same one. An update treats each element on its own,
// with operations that IEEE 754 rounds in one way. So the bits do not depend on how an arena is cut
// into ranges. One that needs_whole_arrays() adds in an order that follows from their sizes. Where parameter, gradient
// and slots are zero, as in padding, they must stay zero.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/shape.h"
#include "holdfast/optim/gradient_clipping.h"
#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/parameter_rules.h"
#include "holdfast/optim/weight_average.h"

namespace holdfast {

// For Holdfast's own use: a step of an optimizer as data (sdk/src/optim/update_pass.h).
struct UpdatePass;

// An array of the model, for a rule that depends on more than its elements.
struct ParameterArray {
  std::string_view name;         // "base/dense/kernel"
  const Shape* shape = nullptr;  // of the array, which has shape->element_count() elements; valid during the call
};

// The base class of all optimizers. A rule of your own is best described with described_optimizer.h: then CPUs and
// devices compute it in one pass. A class that derives from Optimizer itself computes on the host. On a device it is
// called with copies of the arrays, which takes time in each step and no other code; a line of the log says so.
//
//   class SignDescent final : public Optimizer {
//    public:
//     std::string name() const override { return "sign_descent"; }
//     std::string configuration() const override { return R"({"kind":"mine.sign_descent","rate":0.01})"; }
//     std::unique_ptr<Optimizer> clone() const override { return std::make_unique<SignDescent>(*this); }
//     std::vector<std::string> slot_names() const override { return {}; }
//     void update(std::int64_t, std::span<float> parameters, std::span<const float> gradients,
//                 std::span<const std::span<float>>) const override {
//       for (std::size_t i = 0; i < parameters.size(); ++i) {
//         parameters[i] -= gradients[i] > 0 ? 0.01F : gradients[i] < 0 ? -0.01F : 0.0F;
//       }
//     }
//   };
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // For messages: "adam".
  virtual std::string name() const = 0;
  // The kind and all options as JSON, with numbers that read back exactly. A run refuses to resume with
  // another configuration. Equal optimizers must give equal texts, on every machine.
  virtual std::string configuration() const = 0;
  // An independent copy; a Trainer keeps one.
  virtual std::unique_ptr<Optimizer> clone() const = 0;

  // One name for each slot. Savepoints hold the slots under these names. None may be "moving_average".
  virtual std::vector<std::string> slot_names() const = 0;

  // What is done to the gradients before update() gets them. Part of the configuration.
  virtual GradientClipping clipping() const { return {}; }

  // Which arrays have other rules. Part of the configuration. An optimizer with rules for weight decay overrides
  // with_weight_decay_times(), and one with factors of learning rates with_learning_rate().
  virtual ParameterRules parameter_rules() const { return {}; }
  // Moving averages of the parameters that are kept besides the slots. Part of the configuration.
  virtual WeightAverage weight_average() const { return {}; }
  // The same optimizer with its weight decay times this factor, which may be 0; the default is null.
  virtual std::unique_ptr<Optimizer> with_weight_decay_times(float) const { return nullptr; }

  // Whether a step depends on whole arrays, as on a norm. Then update() gets one array of the model at a time, perhaps
  // with padding after it, which is zero. Different arrays may be updated by several threads at once.
  virtual bool needs_whole_arrays() const { return false; }

  // What names the present formulas and orders of sums, once they gave other bits in an earlier version of this class;
  // empty until then. A run refuses to resume with another text, unless accept_other_arithmetic is set.
  virtual std::string arithmetic() const { return {}; }

  // What the elements of a slot begin with. Padding begins with zeros all the same.
  virtual float initial_value_of_slot(std::size_t slot) const;

  // The learning rate of the options, and the same optimizer with another one: what callbacks ask for and change
  // (TrainingContext::set_learning_rate()). An optimizer whose rate they may change overrides both. The defaults are
  // nothing and null.
  virtual std::optional<LearningRate> learning_rate() const;
  // The same optimizer with this rate; null if its rate cannot be changed.
  virtual std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const;

  // Updates one range of the arenas, which lie in the host's memory. `step` counts from 1, and `slots` are in the order
  // of slot_names(). Asserts that all ranges have one length; they must not overlap.
  virtual void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                      std::span<const std::span<float>> slots) const = 0;

  // Updates one array, if the optimizer needs_whole_arrays(). The ranges are those of update(), with padding after the
  // elements of the array. The default calls update(), which suits a rule that does not ask what the array is.
  virtual void update_array(const ParameterArray& array, std::int64_t step, std::span<float> parameters,
                            std::span<const float> gradients, std::span<const std::span<float>> slots) const;

  // For Holdfast's own use: step `step` in a form that a device can compute, with the bits of update(). The default is
  // null: only update() knows the rule. So it is for classes that derive from Adam, AdamW or SGD.
  virtual std::shared_ptr<const UpdatePass> pass(std::int64_t step) const;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
};

}  // namespace holdfast
