#pragma once

// Losses of how far two regions overlap, as keras.losses defines them (Keras 3), for pictures whose pixels are inside
// or outside of something.
//
//   Trainer trainer(replica, model, Adam{}, losses::Dice{});
//   Trainer trainer(replica, model, Adam{}, losses::Tversky{{.alpha = 0.3F, .beta = 0.7F}});
//
// Below, y is an output, a probability, and t its target, 0 or 1; a sum goes over the elements of a sample. Keras adds
// over the whole batch unless `axis` says otherwise. No loss can here, because the samples of a batch are computed on
// several replicas: so the default is that of Keras with all axes but that of the samples.
//
// Each loss is a function of values (value_loss.h): it is computed where the model is, and takes weights of samples, or
// of the positions that `axis` leaves.

#include <cstdint>

#include "holdfast/nn/value_loss.h"

namespace holdfast::losses {

struct DiceOptions {
  AxisList axis = {};  // of a sample, over which sums go; the first is 0, which Keras counts as 1. Default: all
};

// 1 - 2 sum(t y) / (sum(t) + sum(y) + 1e-7), the mean over the axes that are left.
class Dice final : public BuiltInLoss {
 public:
  explicit Dice(DiceOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<Dice>(*this); }

 private:
  DiceOptions options_;
};

struct TverskyOptions {
  float alpha = 0.5F;  // from 0 on: how much t (1 - y) counts, which are misses
  float beta = 0.5F;   // from 0 on: how much y (1 - t) counts, which are false alarms
  AxisList axis = {};  // as above
};

// 1 - sum(t y) / (sum(t y) + alpha sum(t (1 - y)) + beta sum(y (1 - t)) + 1e-7), the mean over the axes that are left
// (Salehi et al., 2017).
class Tversky final : public BuiltInLoss {
 public:
  // Throws Error{invalid_argument} for options out of range.
  explicit Tversky(TverskyOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<Tversky>(*this); }

 private:
  TverskyOptions options_;
};

}  // namespace holdfast::losses
