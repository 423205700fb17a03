#pragma once

// A loss as a function of values (functions.h), which is the short way to a loss of your own:
//
//   const LossFunction huber("huber", [](const Value& outputs, const Value& targets) {
//     const Value distance = absolute(outputs - targets);
//     return where(less(distance, 1.0F), 0.5F * square(distance), distance - 0.5F);
//   });
//   Trainer trainer(replica, model, Adam{}, huber);
//
// The function describes the loss once, before training, and its gradient follows from the description. It is computed
// where the model is: on CPUs and on devices, with sample weights or without.
//
// A value never mixes samples, since a batch may be cut into shards anywhere. So a loss that takes the other samples of
// a batch for negatives, as contrastive losses do, is not possible. Give each sample its own partners as inputs of the
// model, call the layers of the tower on each of them, and compare the results by the Dot layer in the model.
//
// A loss with options of its own derives from ValueLoss. A run refuses to resume with other options:
//
//   class Focal final : public ValueLoss {
//    public:
//     explicit Focal(float gamma) : ValueLoss("focal", {{"gamma", gamma}}), gamma_(gamma) {}
//     Value losses(const Value& p, const Value& t) const override {
//       const Value right = t * p + (1.0F - t) * (1.0F - p);
//       return -power(1.0F - right, gamma_) * logarithm(right);
//     }
//     std::unique_ptr<Loss> clone() const override { return std::make_unique<Focal>(*this); }
//
//    private:
//     float gamma_;
//   };

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

// The numbers that a loss or metric depends on, by name. They are compared when a run is resumed.
using ValueOptionsByName = std::map<std::string, double>;

class ValueLoss : public Loss {
 public:
  // What is minimized. `outputs` has the shape of the model's output for one sample, `targets` that of target_shape();
  // both are f32. The result is f32 and depends on the outputs. It has one number a sample, or an array of them, of
  // which the mean is taken. Weights of samples apply to a sample, or to each position: an array that begins with the
  // axes of the weights has a loss for each of them. Masked positions (weight 0) may hold anything, and their gradient
  // is 0.
  //
  // Only functions of values may be used, not layers. It is called several times, also by several threads at once, and
  // must describe the same loss each time.
  virtual Value losses(const Value& outputs, const Value& targets) const = 0;

  std::string name() const override { return name_; }
  // {"kind":"value_loss","name":...,"options":{...}}
  std::string configuration() const override;
  // The default is the shape of the output: one target for each number of it.
  Shape target_shape(const Shape& output) const override { return output; }

  const ValueLoss* as_values() const final { return this; }

  // Computes on the CPU; for tests of a loss. Rows have no shape, so `outputs` and `targets` of losses() have one axis
  // here. Throws as Loss::evaluate() does.
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const final;

 protected:
  // Throws Error{invalid_argument} without a name, and for options that are not finite.
  explicit ValueLoss(std::string name, ValueOptionsByName options = {});

 private:
  std::string name_;
  ValueOptionsByName options_;
};

// The base of Holdfast's own losses of values. Their configuration names a kind: {"kind":"huber","delta":1}.
class BuiltInLoss : public ValueLoss {
 public:
  std::string configuration() const final { return configuration_; }

 protected:
  // `options` are the members after the kind, such as R"("delta":1)", or empty.
  explicit BuiltInLoss(const std::string& kind, const std::string& options = {});

 private:
  std::string configuration_;
};

// The short form: a name and a function.
class LossFunction final : public ValueLoss {
 public:
  // Describes the loss of each sample or position.
  using Function = std::function<Value(const Value& outputs, const Value& targets)>;

  // What a run of the function depends on besides its name.
  struct Options {
    ValueOptionsByName numbers = {};         // that the function depends on
    std::optional<Shape> target_shape = {};  // of one sample; default: that of the output
  };

  // A run is resumed with a function of the same name and numbers. Give a changed function another name.
  LossFunction(std::string name, Function function) : LossFunction(std::move(name), std::move(function), Options()) {}
  LossFunction(std::string name, Function function, Options options);

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override { return function_(outputs, targets); }
  Shape target_shape(const Shape& output) const override { return target_shape_.value_or(output); }
  std::unique_ptr<Loss> clone() const override { return std::make_unique<LossFunction>(*this); }

 private:
  Function function_;
  std::optional<Shape> target_shape_;
};

}  // namespace holdfast
