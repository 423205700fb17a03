// The gates of a step, sample by sample in blocks of units that stay in the cache. Each formula is a few passes by the
// loops of vector_kernels.h: their exponentials take most of the time, and bits depend on no instruction set.

#include <algorithm>
#include <array>

#include "compute/cpu/cpu_array_kernels.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

namespace {

constexpr std::int64_t kBlockUnits = 256;  // 1 KiB of each array
using Block = std::array<float, kBlockUnits>;

// Passes over a block of so many units.
class Passes {
 public:
  explicit Passes(std::int64_t count) : kernels_(vector_kernels()), count_(count) {}

  void add(const float* a, const float* b, float* to) const { run(ElementFunction::add, a, b, to); }
  void subtract(const float* a, const float* b, float* to) const { run(ElementFunction::subtract, a, b, to); }
  void multiply(const float* a, const float* b, float* to) const { run(ElementFunction::multiply, a, b, to); }
  // to = to + a b
  void add_product(const float* a, const float* b, float* to) const {
    Block product;
    multiply(a, b, product.data());
    add(to, product.data(), to);
  }
  void one_minus(const float* a, float* to) const {
    constexpr float kOne = 1;
    const ElementLane operands[] = {{.values = &kOne, .is_scalar = true}, {.values = a}, {}};
    kernels_.run_instruction(ElementFunction::subtract, operands, count_, to);
  }
  void activate(Activation activation, const float* from, float* to) const {
    if (const ActivationPasses* const passes = passes_of(activation)) return passes->forward(from, to, count_);
    copy(from, to);
  }
  // to = gradient * f'(output)
  void differentiate(Activation activation, const float* output, const float* gradient, float* to) const {
    if (const ActivationPasses* const passes = passes_of(activation)) {
      return passes->backward(output, gradient, to, count_);
    }
    copy(gradient, to);
  }
  void copy(const float* from, float* to) const {
    if (from != to) std::copy_n(from, count_, to);
  }
  void clear(float* to) const { std::fill_n(to, count_, 0.0F); }

 private:
  void run(ElementFunction function, const float* a, const float* b, float* to) const {
    const ElementLane operands[] = {{.values = a}, {.values = b}, {}};
    kernels_.run_instruction(function, operands, count_, to);
  }
  // Null for a linear one.
  const ActivationPasses* passes_of(Activation activation) const {
    switch (activation) {
      case Activation::relu:
        return &kernels_.relu;
      case Activation::tanh:
        return &kernels_.tanh;
      case Activation::sigmoid:
        return &kernels_.sigmoid;
      default:
        HOLDFAST_ASSERT(activation == Activation::linear);
        return nullptr;
    }
  }

  const VectorKernels& kernels_;
  const std::int64_t count_;
};

// A pointer moved on, or null as before.
template <class Float>
Float* moved(Float* array, std::int64_t floats) {
  return array == nullptr ? nullptr : array + floats;
}

// `x`, the mask and the output have all steps of a sample in a row. The other arrays are those of one step.
CellsForward block_of(const RecurrentCells& cells, const CellsForward& arrays, std::int64_t sample, std::int64_t unit) {
  const std::int64_t of_step = sample * cells.units + unit;
  const std::int64_t of_sequence = sample * cells.steps * cells.units + unit;
  CellsForward at = arrays;
  at.x += sample * cells.steps * cells.gates() * cells.units + unit;
  at.mask = moved(arrays.mask, sample * cells.steps);
  at.s += sample * cells.gates() * cells.units + unit;
  at.state += of_step;
  at.cell = moved(arrays.cell, of_step);
  at.kept = moved(arrays.kept, sample * cells.kept() * cells.units + unit);
  at.next_state += of_step;
  at.next_cell = moved(arrays.next_cell, of_step);
  at.output = moved(arrays.output, of_sequence);
  return at;
}

CellsBackward block_of(const RecurrentCells& cells, const CellsBackward& arrays, std::int64_t sample,
                       std::int64_t unit) {
  const std::int64_t of_step = sample * cells.units + unit;
  CellsBackward at = arrays;
  at.mask = moved(arrays.mask, sample * cells.steps);
  at.kept = moved(arrays.kept, sample * cells.kept() * cells.units + unit);
  at.state = moved(arrays.state, of_step);
  at.cell = moved(arrays.cell, of_step);
  at.next_state = moved(arrays.next_state, of_step);
  at.next_cell = moved(arrays.next_cell, of_step);
  at.output_gradient = moved(arrays.output_gradient, sample * cells.steps * cells.units + unit);
  at.through_product = moved(arrays.through_product, of_step);
  at.carried += of_step;
  at.carried_cell = moved(arrays.carried_cell, of_step);
  at.x_gradient += sample * cells.steps * cells.gates() * cells.units + unit;
  at.s_gradient += sample * cells.gates() * cells.units + unit;
  return at;
}

template <class Arrays, class Run>
void for_each_block(const RecurrentCells& cells, const Arrays& arrays, const Run& run) {
  for (std::int64_t sample = 0; sample < cells.samples; ++sample) {
    for (std::int64_t unit = 0; unit < cells.units; unit += kBlockUnits) {
      run(Passes(std::min(kBlockUnits, cells.units - unit)), block_of(cells, arrays, sample, unit));
    }
  }
}

// state = f(x + s), where s is the product of the state before with the recurrent kernel.
void run_simple(const RecurrentCells& cells, const Passes& passes, const CellsForward& at) {
  passes.add(at.x, at.s, at.next_state);
  passes.activate(cells.activation, at.next_state, at.next_state);
}

// cell' = f * cell + i * c and state' = o * activation(cell'), with the gates i, f, c and o.
void run_lstm(const RecurrentCells& cells, const Passes& passes, const CellsForward& at) {
  for (std::int64_t gate = 0; gate < 4; ++gate) {
    float* const to = at.kept + gate * cells.units;
    passes.add(at.x + gate * cells.units, at.s + gate * cells.units, to);
    // c is the third of the gates.
    passes.activate(gate == 2 ? cells.activation : cells.recurrent_activation, to, to);
  }
  const float* const i = at.kept;
  const float* const f = i + cells.units;
  const float* const c = f + cells.units;
  const float* const o = c + cells.units;
  passes.multiply(f, at.cell, at.next_cell);
  passes.add_product(i, c, at.next_cell);
  passes.activate(cells.activation, at.next_cell, at.next_state);
  passes.multiply(o, at.next_state, at.next_state);
}

// state' = z * state + (1 - z) * h, where h = activation(x + r * s).
void run_gru(const RecurrentCells& cells, const Passes& passes, const CellsForward& at) {
  float* const z = at.kept;
  float* const r = z + cells.units;
  float* const h = r + cells.units;
  float* const h_s = h + cells.units;
  passes.add(at.x, at.s, z);
  passes.activate(cells.recurrent_activation, z, z);
  passes.add(at.x + cells.units, at.s + cells.units, r);
  passes.activate(cells.recurrent_activation, r, r);
  // The gradient of r needs what r is multiplied with, and `s` is not kept.
  passes.copy(at.s + 2 * cells.units, h_s);
  passes.multiply(r, h_s, h);
  passes.add(at.x + 2 * cells.units, h, h);
  passes.activate(cells.activation, h, h);
  Block rest;
  passes.one_minus(z, rest.data());
  passes.multiply(z, at.state, at.next_state);
  passes.add_product(rest.data(), h, at.next_state);
}

void skip_step(const Passes& passes, const CellsForward& at) {
  passes.copy(at.state, at.next_state);
  if (at.next_cell != nullptr) passes.copy(at.cell, at.next_cell);
}

void back_simple(const RecurrentCells& cells, const Passes& passes, const CellsBackward& at, const float* gradient) {
  passes.differentiate(cells.activation, at.next_state, gradient, at.s_gradient);
  passes.copy(at.s_gradient, at.x_gradient);
  // The state before goes through the product alone.
  passes.clear(at.carried);
}

void back_lstm(const RecurrentCells& cells, const Passes& passes, const CellsBackward& at, const float* gradient) {
  const float* const i = at.kept;
  const float* const f = i + cells.units;
  const float* const c = f + cells.units;
  const float* const o = c + cells.units;
  Block cell, product;
  // The output gate has gradient * f(cell'). The forward pass kept only its product with o, so it is computed again.
  passes.activate(cells.activation, at.next_cell, cell.data());
  passes.multiply(gradient, cell.data(), product.data());
  passes.differentiate(cells.recurrent_activation, o, product.data(), at.s_gradient + 3 * cells.units);
  // The cell has gradient * o * f'(cell'), and what comes from the next step.
  passes.multiply(gradient, o, product.data());
  passes.differentiate(cells.activation, cell.data(), product.data(), cell.data());
  passes.add(at.carried_cell, cell.data(), cell.data());
  passes.multiply(cell.data(), c, product.data());
  passes.differentiate(cells.recurrent_activation, i, product.data(), at.s_gradient);
  passes.multiply(cell.data(), at.cell, product.data());
  passes.differentiate(cells.recurrent_activation, f, product.data(), at.s_gradient + cells.units);
  passes.multiply(cell.data(), i, product.data());
  passes.differentiate(cells.activation, c, product.data(), at.s_gradient + 2 * cells.units);
  passes.multiply(cell.data(), f, at.carried_cell);
  passes.clear(at.carried);
  // x and s are added in each gate, so they have the same gradient.
  for (std::int64_t gate = 0; gate < 4; ++gate) {
    passes.copy(at.s_gradient + gate * cells.units, at.x_gradient + gate * cells.units);
  }
}

void back_gru(const RecurrentCells& cells, const Passes& passes, const CellsBackward& at, const float* gradient) {
  const float* const z = at.kept;
  const float* const r = z + cells.units;
  const float* const h = r + cells.units;
  const float* const h_s = h + cells.units;
  float* const of_h = at.x_gradient + 2 * cells.units;
  Block product;
  // z has gradient * (state - h).
  passes.subtract(at.state, h, product.data());
  passes.multiply(gradient, product.data(), product.data());
  passes.differentiate(cells.recurrent_activation, z, product.data(), at.s_gradient);
  // h has gradient * (1 - z).
  passes.one_minus(z, product.data());
  passes.multiply(gradient, product.data(), product.data());
  passes.differentiate(cells.activation, h, product.data(), of_h);
  passes.multiply(of_h, h_s, product.data());
  passes.differentiate(cells.recurrent_activation, r, product.data(), at.s_gradient + cells.units);
  // h is made of x and of r s, so only in it their gradients differ.
  passes.multiply(of_h, r, at.s_gradient + 2 * cells.units);
  passes.multiply(gradient, z, at.carried);
  passes.copy(at.s_gradient, at.x_gradient);
  passes.copy(at.s_gradient + cells.units, at.x_gradient + cells.units);
}

// The step had no effect: the gradient of its state is that of the state before it.
// `carried_cell` stays as it is, since the cell was passed on unchanged, too.
void skip_back(const RecurrentCells& cells, const Passes& passes, const CellsBackward& at, const float* gradient) {
  passes.copy(gradient, at.carried);
  for (std::int64_t gate = 0; gate < cells.gates(); ++gate) {
    passes.clear(at.s_gradient + gate * cells.units);
    passes.clear(at.x_gradient + gate * cells.units);
  }
}

void run_back(const RecurrentCells& cells, const Passes& passes, const CellsBackward& at) {
  // A sum of its own, since `carried` is written below while the sum is still read.
  Block gradient;
  passes.copy(at.carried, gradient.data());
  if (at.through_product != nullptr) passes.add(at.through_product, gradient.data(), gradient.data());
  if (at.output_gradient != nullptr) passes.add(gradient.data(), at.output_gradient, gradient.data());
  if (at.mask != nullptr && *at.mask == 0) return skip_back(cells, passes, at, gradient.data());
  if (cells.kind == CellKind::simple) back_simple(cells, passes, at, gradient.data());
  if (cells.kind == CellKind::lstm) back_lstm(cells, passes, at, gradient.data());
  if (cells.kind == CellKind::gru) back_gru(cells, passes, at, gradient.data());
}

}  // namespace

void CpuArrayKernels::cells_forward(const RecurrentCells& cells, const CellsForward& arrays) {
  for_each_block(cells, arrays, [&](const Passes& passes, const CellsForward& at) {
    if (at.mask != nullptr && *at.mask == 0) {
      skip_step(passes, at);
    } else if (cells.kind == CellKind::simple) {
      run_simple(cells, passes, at);
    } else if (cells.kind == CellKind::lstm) {
      run_lstm(cells, passes, at);
    } else {
      run_gru(cells, passes, at);
    }
    // After a skipped step, the output has the state of the step before once more.
    if (at.output != nullptr) passes.copy(at.next_state, at.output);
  });
}

void CpuArrayKernels::cells_backward(const RecurrentCells& cells, const CellsBackward& arrays) {
  for_each_block(cells, arrays, [&](const Passes& passes, const CellsBackward& at) { run_back(cells, passes, at); });
}

}  // namespace holdfast::compute
