#pragma once

// A moving average of each parameter, which an optimizer keeps besides its slots (Polyak and Juditsky, "Acceleration of
// Stochastic Approximation by Averaging", SIAM Journal on Control and Optimization 30, 1992; with the weights and the
// options of Keras's optimizers). After update t, which made the parameters w, with the momentum m:
//
//   a_1 = w,  a_t = m a_(t-1) + (1 - m) w
//   w = a_t  if t is a multiple of ema_overwrite_frequency
//
// All optimizers of Holdfast have the options:
//
//   Adam{{.use_ema = true, .ema_momentum = 0.999F}}
//
// fit() leaves the trained weights at its end, where Keras makes the averages the weights: Trainer::take_averages().
//
// Averages begin as the initial weights, or after a Trainer::compile() as the weights of that moment. They are part of
// the training state. Savepoints hold them as one more slot, "optimizer/moving_average/dense/kernel". Training goes on
// with the parameters. SwapEMAWeights (swap_ema_weights.h) validates the averages, and Trainer::evaluate(),
// Trainer::load_weights() and load_model() read them if they are given Weights::averaged (weights.h). Buffers of
// layers, such as the moving means of BatchNormalization, have no such averages.

#include <cstdint>

namespace holdfast {

// The name of the slot that holds the averages.
inline constexpr const char* kAverageSlot = "moving_average";

// What the options of an optimizer say of averages.
struct WeightAverage {
  bool is_kept = false;    // whether updates keep averages
  float momentum = 0.99F;  // in [0, 1]
  // Updates from one overwriting of the parameters to the next; 0: they are never overwritten.
  std::int64_t overwrite_frequency = 0;
};

}  // namespace holdfast
