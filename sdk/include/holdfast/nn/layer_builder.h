#pragma once

// What a layer builds itself with: its weights, and whether the model trains. Layer::build() gets one for each call of
// the layer, and describes the layer with functions of values:
//
//   std::vector<Value> Scale::build(LayerBuilder& builder, std::span<const Value> inputs) const {
//     const std::int64_t channels = inputs[0].shape()[inputs[0].shape().rank() - 1];
//     return {inputs[0] * builder.parameter("scale", {channels}, Initializer::ones())};
//   }

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/shape.h"
#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/regularizer.h"
#include "holdfast/nn/value.h"

namespace holdfast {

// Inputs and outputs of one unit, by which initializers scale.
struct Fans {
  std::int64_t in = 0;   // that one output depends on
  std::int64_t out = 0;  // that one input has an effect on
};

class LayerBuilder {
 public:
  virtual ~LayerBuilder() = default;

  // An array that is trained. A second call of the layer gets the array of the first one. The name is unique in the
  // layer. Throws Error{invalid_argument} if the shape differs from that of the first call.
  virtual Value parameter(const std::string& name, const Shape& shape, const Initializer& initializer,
                          const Fans& fans = {}) = 0;
  // An array that is saved with the model and not trained: a moving average that the layer updates itself, or numbers
  // that stand still. No pass of training may read one that follow_batch() updates.
  virtual Value buffer(const std::string& name, const Shape& shape, const Initializer& initializer,
                       const Fans& fans = {}) = 0;

  // Two graphs are built, one for training and one for inference. Both must ask for the same weights in the same order.
  virtual bool is_training() const = 0;

  // Adds the penalty of a parameter of this layer to the loss. For one array the last call counts. Throws
  // Error{invalid_argument} for a value that parameter() did not return.
  virtual void regularize(const Value& parameter, const Regularizer& regularizer) {
    static_cast<void>(parameter), static_cast<void>(regularizer);
  }

  // Keeps a parameter of this layer in bounds. For one array the last call counts. Throws Error{invalid_argument} for a
  // value that parameter() did not return, and for axes that it does not have.
  virtual void constrain(const Value& parameter, const Constraint& constraint) {
    static_cast<void>(parameter), static_cast<void>(constraint);
  }

  // Whether the layer is frozen (Model::frozen()), so that nothing of it changes. Its parameter() gives an array that
  // is not trained, and its follow_batch() does nothing. A layer that normalizes with its batch should look here, and
  // compute as in inference. Both graphs have the same answer.
  virtual bool is_frozen() const { return false; }

  // In training: `sums`, which are not for each sample, has a sum over the rows of the shard for each element of the
  // buffers, in their order, and then the number of rows. After each update,
  //
  //   buffer = buffer * momentum + (sum over shards of sums) / (sum over shards of rows) * (1 - momentum).
  virtual void follow_batch(const Value& sums, const std::vector<Value>& buffers, float momentum) = 0;

  // In training, x with each element 0 at the probability `rate`, from 0 to below 1, and else divided by 1 - rate; in
  // inference x itself. Each call draws anew in each step, with the same draws on any number of replicas. Throws
  // Error{invalid_argument} for another rate.
  virtual Value dropout(const Value& x, float rate) = 0;

  // For Holdfast's own layers, whose draws are operations: a number that this call of a layer shares with no other one
  // of the model.
  virtual std::uint64_t draw_sequence() const = 0;
  virtual std::uint64_t draw_sequences_per_step() const = 0;  // above all numbers of draw_sequence()
};

}  // namespace holdfast
