#pragma once

// A copy of the weights of an earlier epoch, for callbacks that ask fit() to end with it. It is part of the training
// state while a fit() may use it: replicas share it, compare it and save it. docs/decisions/training-loop.md

#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/core/arena.h"
#include "holdfast/train/trainable.h"
#include "train/state/train_state.h"

namespace holdfast {

// The parameters and buffers among the arrays of the Trainable, in its order.
std::vector<StateSpan> weights_of(Trainable& trainable);

class KeptWeights {
 public:
  // Finds room for a copy of all parameters and buffers, or gives it back. The copy is zeros at first. Does nothing if
  // that is done already.
  void lay_out(bool has_room, Trainable& trainable);
  bool has_room() const { return floats_ != nullptr; }

  // One array for each parameter and buffer of the Trainable, in its order, in its memory: "kept/model/dense/kernel".
  std::vector<StateSpan> spans() const;
  void keep(Trainable& trainable);
  // The Trainable gets the kept weights, and its own are kept in their place.
  void exchange(Trainable& trainable);
  // The digest of the parameters, as Training::weights_digest() has it of the Trainable.
  Digest weights_digest(MemorySpace& memory) const;

 private:
  std::span<float> arena() const { return {floats_.get(), layout_.float_count()}; }

  ArenaLayout layout_;
  std::vector<StateKind> kinds_;  // of its entries
  std::shared_ptr<float[]> floats_;
};

// All arrays of a training state: those of the Trainable, then the kept weights. A view; both outlive it.
class StateArrays {
 public:
  // For a state without kept weights.
  StateArrays(Trainable& trainable) : trainable_(&trainable) {}  // NOLINT(google-explicit-constructor)
  StateArrays(Trainable& trainable, KeptWeights& kept) : trainable_(&trainable), kept_(&kept) {}

  std::vector<StateSpan> spans() const;
  MemorySpace& memory() const { return trainable_->memory(); }
  // Makes the arrays those that `state` has. Their numbers are undefined where they change. Throws what
  // Trainable::lay_out() throws.
  void lay_out(const TrainState& state) const;

 private:
  Trainable* trainable_;
  KeptWeights* kept_ = nullptr;
};

}  // namespace holdfast
