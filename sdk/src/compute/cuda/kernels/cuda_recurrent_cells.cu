// A step of recurrent layers on CUDA devices: a thread for each unit of each sample. The formulas are those of
// cpu_recurrent_cells.cpp, in the same order. docs/decisions/device-arithmetic.md

#include "compute/arithmetic/activations.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/runtime/cuda_elements.cuh"
#include "holdfast/base/error.h"

namespace holdfast::compute {
namespace {

// All threads have the same activation, so the branch does not divide a warp. Layers let no others through
// (check_activation() in recurrent_parts.cpp), so the default is the linear one.
__device__ float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return Relu::value(x);
    case Activation::tanh:
      return Tanh::value(x);
    case Activation::sigmoid:
      return Sigmoid::value(x);
    default:
      return x;
  }
}

__device__ float slope(Activation activation, float output) {
  switch (activation) {
    case Activation::relu:
      return Relu::derivative(output);
    case Activation::tanh:
      return Tanh::derivative(output);
    case Activation::sigmoid:
      return Sigmoid::derivative(output);
    default:
      return 1;
  }
}

// Where the numbers of one unit of one sample are.
struct UnitPlaces {
  __device__ UnitPlaces(const RecurrentCells& cells, std::int64_t index)
      : sample(index / cells.units),
        step(index),
        sequence(sample * cells.steps * cells.units + index % cells.units),
        x(sample * cells.steps * cells.gates() * cells.units + index % cells.units),
        s(sample * cells.gates() * cells.units + index % cells.units),
        kept(sample * cells.kept() * cells.units + index % cells.units) {}

  std::int64_t sample;
  std::int64_t step;      // in arrays of the step
  std::int64_t sequence;  // in outputs of the sequence
  std::int64_t x;
  std::int64_t s;
  std::int64_t kept;
};

// The arrays of a call begin at its step. In those of the sequence the next sample is all steps further.
__device__ bool is_skipped(const RecurrentCells& cells, const float* mask, std::int64_t sample) {
  return mask != nullptr && mask[sample * cells.steps] == 0;
}

__device__ float next_of_lstm(const RecurrentCells& cells, const CellsForward& arrays, const UnitPlaces& at) {
  float gates[4];
  for (int gate = 0; gate < 4; ++gate) {
    const float sum = arrays.x[at.x + gate * cells.units] + arrays.s[at.s + gate * cells.units];
    gates[gate] = activated(gate == 2 ? cells.activation : cells.recurrent_activation, sum);
    arrays.kept[at.kept + gate * cells.units] = gates[gate];
  }
  // i, f, c and o, in the order of Keras's weights.
  const float cell = gates[1] * arrays.cell[at.step] + gates[0] * gates[2];
  arrays.next_cell[at.step] = cell;
  return gates[3] * activated(cells.activation, cell);
}

// The reset gate multiplies the product of the state, as with Keras's reset_after. The other order, and dropped states,
// are graphs of steps (recurrent_steps.cpp).
__device__ float next_of_gru(const RecurrentCells& cells, const CellsForward& arrays, const UnitPlaces& at) {
  const std::int64_t units = cells.units;
  const float z = activated(cells.recurrent_activation, arrays.x[at.x] + arrays.s[at.s]);
  const float r = activated(cells.recurrent_activation, arrays.x[at.x + units] + arrays.s[at.s + units]);
  const float h_s = arrays.s[at.s + 2 * units];
  const float h = activated(cells.activation, arrays.x[at.x + 2 * units] + r * h_s);
  // The backward pass needs h_s besides the gates, since the reset multiplies it.
  const float numbers[] = {z, r, h, h_s};
  for (int i = 0; i < 4; ++i) arrays.kept[at.kept + i * units] = numbers[i];
  return z * arrays.state[at.step] + (1 - z) * h;
}

__global__ void __launch_bounds__(kElementThreads)
    cells_forward_kernel(const __grid_constant__ RecurrentCells cells, const __grid_constant__ CellsForward arrays) {
  const std::int64_t index = first_element<1>();
  if (index >= cells.samples * cells.units) return;
  const UnitPlaces at(cells, index);
  // A skipped step hands on what it was given.
  if (is_skipped(cells, arrays.mask, at.sample)) {
    arrays.next_state[at.step] = arrays.state[at.step];
    if (arrays.next_cell != nullptr) arrays.next_cell[at.step] = arrays.cell[at.step];
    if (arrays.output != nullptr) arrays.output[at.sequence] = arrays.state[at.step];
    return;
  }
  float next = 0;
  if (cells.kind == CellKind::simple) next = activated(cells.activation, arrays.x[at.x] + arrays.s[at.s]);
  if (cells.kind == CellKind::lstm) next = next_of_lstm(cells, arrays, at);
  if (cells.kind == CellKind::gru) next = next_of_gru(cells, arrays, at);
  arrays.next_state[at.step] = next;
  if (arrays.output != nullptr) arrays.output[at.sequence] = next;
}

__device__ void set_gradient(const RecurrentCells& cells, const CellsBackward& arrays, const UnitPlaces& at, int gate,
                             float of_x, float of_s) {
  arrays.x_gradient[at.x + gate * cells.units] = of_x;
  arrays.s_gradient[at.s + gate * cells.units] = of_s;
}

__device__ void back_lstm(const RecurrentCells& cells, const CellsBackward& arrays, const UnitPlaces& at,
                          float gradient) {
  const float* const kept = arrays.kept + at.kept;
  const float i = kept[0], f = kept[cells.units], c = kept[2 * cells.units], o = kept[3 * cells.units];
  // Computed again, which takes less time than to load another array.
  const float cell = activated(cells.activation, arrays.next_cell[at.step]);
  const float of_o = gradient * cell * slope(cells.recurrent_activation, o);
  const float of_cell = arrays.carried_cell[at.step] + gradient * o * slope(cells.activation, cell);
  const float of_i = of_cell * c * slope(cells.recurrent_activation, i);
  const float of_f = of_cell * arrays.cell[at.step] * slope(cells.recurrent_activation, f);
  const float of_c = of_cell * i * slope(cells.activation, c);
  set_gradient(cells, arrays, at, 0, of_i, of_i);
  set_gradient(cells, arrays, at, 1, of_f, of_f);
  set_gradient(cells, arrays, at, 2, of_c, of_c);
  set_gradient(cells, arrays, at, 3, of_o, of_o);
  arrays.carried_cell[at.step] = of_cell * f;
  // All of the state's gradient goes through the product, so nothing is carried past it.
  arrays.carried[at.step] = 0;
}

__device__ void back_gru(const RecurrentCells& cells, const CellsBackward& arrays, const UnitPlaces& at,
                         float gradient) {
  const float* const kept = arrays.kept + at.kept;
  const float z = kept[0], r = kept[cells.units], h = kept[2 * cells.units], h_s = kept[3 * cells.units];
  // next = z state + (1 - z) h, so its derivative by z is state - h.
  const float of_z = gradient * (arrays.state[at.step] - h) * slope(cells.recurrent_activation, z);
  const float of_h = gradient * (1 - z) * slope(cells.activation, h);
  const float of_r = of_h * h_s * slope(cells.recurrent_activation, r);
  set_gradient(cells, arrays, at, 0, of_z, of_z);
  set_gradient(cells, arrays, at, 1, of_r, of_r);
  set_gradient(cells, arrays, at, 2, of_h, of_h * r);
  arrays.carried[at.step] = gradient * z;
}

__global__ void __launch_bounds__(kElementThreads)
    cells_backward_kernel(const __grid_constant__ RecurrentCells cells, const __grid_constant__ CellsBackward arrays) {
  const std::int64_t index = first_element<1>();
  if (index >= cells.samples * cells.units) return;
  const UnitPlaces at(cells, index);
  float gradient = arrays.carried[at.step];
  if (arrays.through_product != nullptr) gradient = arrays.through_product[at.step] + gradient;
  if (arrays.output_gradient != nullptr) gradient += arrays.output_gradient[at.sequence];
  // The gradient passes a skipped step unchanged, and no weight has a part in it.
  if (is_skipped(cells, arrays.mask, at.sample)) {
    arrays.carried[at.step] = gradient;
    // Zeros are written: the products over all steps read these places, too.
    for (int gate = 0; gate < cells.gates(); ++gate) set_gradient(cells, arrays, at, gate, 0, 0);
    return;
  }
  if (cells.kind == CellKind::lstm) return back_lstm(cells, arrays, at, gradient);
  if (cells.kind == CellKind::gru) return back_gru(cells, arrays, at, gradient);
  const float of_sum = gradient * slope(cells.activation, arrays.next_state[at.step]);
  set_gradient(cells, arrays, at, 0, of_sum, of_sum);
  arrays.carried[at.step] = 0;
}

}  // namespace

void CudaArrayKernels::cells_forward(const RecurrentCells& cells, const CellsForward& arrays) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const std::int64_t count = cells.samples * cells.units;
  if (count == 0) return;
  launch(cells_forward_kernel, block_count(count, kElementThreads), kElementThreads, context_.stream(), cells, arrays);
  check_launch("recurrent cells", {{"units", count}});
}

void CudaArrayKernels::cells_backward(const RecurrentCells& cells, const CellsBackward& arrays) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const std::int64_t count = cells.samples * cells.units;
  if (count == 0) return;
  launch(cells_backward_kernel, block_count(count, kElementThreads), kElementThreads, context_.stream(), cells, arrays);
  check_launch("gradient of recurrent cells", {{"units", count}});
}

}  // namespace holdfast::compute
