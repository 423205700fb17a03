#pragma once

// What a recurrent layer computes in one step besides its products: the gates of each unit, its next state, and the
// gradients of these.
//
// Gates follow each other in the order of Keras's weights:
//   simple  a                       state' = f(a)
//   lstm    i, f, c, o              cell'  = r(f) cell + r(i) f(c);  state' = r(o) f(cell')     Hochreiter and
//                                   Schmidhuber, 1997; Gers et al., 2000
//   gru     z, r, h                 state' = r(z) state + (1 - r(z)) f(h_x + r(r) h_s)          Cho et al., 2014, with
//                                   the reset after the product, as cuDNN has it
// f is the activation and r the recurrent one. A gate is the sum of its part of the input's product, x, and of the
// state's, s; in h of a gru they are apart.

#include <cstddef>
#include <cstdint>

#include "core/host_device.h"
#include "holdfast/compute/activation.h"

namespace holdfast::compute {

enum class CellKind : std::uint8_t { simple, lstm, gru };

struct RecurrentCells {
  CellKind kind = CellKind::lstm;
  // linear, relu, tanh or sigmoid: those whose derivative follows from the output
  Activation activation = Activation::tanh;
  Activation recurrent_activation = Activation::sigmoid;
  std::int64_t samples = 1;
  std::int64_t units = 1;
  std::int64_t steps = 1;  // of the sequence: arrays of it are [samples, steps, ...]

  HOLDFAST_HOST_DEVICE std::int64_t gates() const {
    return kind == CellKind::simple ? 1 : kind == CellKind::lstm ? 4 : 3;
  }
  // Numbers of a unit that the backward pass needs besides states and cells: the gates, and h_s of a gru.
  HOLDFAST_HOST_DEVICE std::int64_t kept() const { return kind == CellKind::simple ? 0 : 4; }
};

// One step. Arrays of the sequence begin at the step, in sample 0, and go from sample to sample by whole sequences. All
// others are those of the step alone: [samples, ...].
struct CellsForward {
  const float* x = nullptr;     // of the sequence: [gates, units]
  const float* mask = nullptr;  // of the sequence: a number, 0 where the step is skipped; null: none is
  const float* s = nullptr;     // [gates, units]
  const float* state = nullptr;
  const float* cell = nullptr;  // of an lstm
  float* kept = nullptr;        // [kept, units]
  float* next_state = nullptr;
  float* next_cell = nullptr;
  float* output = nullptr;  // of the sequence: next_state again; null: not wanted
};

struct CellsBackward {
  const float* mask = nullptr;
  const float* kept = nullptr;
  const float* state = nullptr;
  const float* cell = nullptr;
  const float* next_state = nullptr;
  const float* next_cell = nullptr;
  const float* output_gradient = nullptr;  // of the sequence; null: none
  // The gradient of next_state is what comes through the product of the next step (null in the last one), and `carried`
  // past it. Then `carried` becomes the part of state's gradient that passes the product of this step.
  const float* through_product = nullptr;
  float* carried = nullptr;
  float* carried_cell = nullptr;  // the gradient of next_cell, then that of cell
  float* x_gradient = nullptr;    // of the sequence: [gates, units]
  float* s_gradient = nullptr;    // [gates, units]
};

}  // namespace holdfast::compute
