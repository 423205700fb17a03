// A tile's results are computed once: the loss and both products of the backward pass follow while they are there. The
// gradient of the kernel is as large as the kernel, so each tile but the first writes its part to a second array, which
// is added to the sum. The size of tiles is an option of the user and not found from a cache or from memory, since bits
// depend on it. docs/decisions/losses.md

#include "nn/program/product_tiles.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {

namespace {

// sum[i] += part[i]
void add_to(compute::ArrayKernels& kernels, const float* part, std::int64_t floats, float* sum) {
  compute::ElementProgram program;
  program.instruction_count = program.output_count = 1;
  program.input_count = 2;
  program.instructions[0].function = compute::ElementFunction::add;
  program.instructions[0].operands[1] = {.kind = compute::ElementOperand::Kind::input, .index = 1};
  compute::ElementShape shape;
  shape.extents[0] = floats;
  shape.strides[0][0] = shape.strides[1][0] = 1;
  const float* const from[] = {sum, part};
  kernels.elements(program, shape, from, {&sum, 1});
}

}  // namespace

ProductTiles::Layout::Layout(const LastProduct& product, std::int64_t rows, std::int64_t rows_at_once,
                             bool has_gradients) {
  const auto place = [this](std::int64_t count) {
    // Whole cache lines of 64 bytes, so that arrays that follow each other stay aligned.
    constexpr std::size_t kLineFloats = 16;
    const std::size_t begin = floats;
    floats += (static_cast<std::size_t>(count) + kLineFloats - 1) / kLineFloats * kLineFloats;
    return begin;
  };
  // The last tile may have fewer rows, and uses the same places.
  const std::int64_t tile = std::min(rows, rows_at_once);
  results = place(tile * product.outputs);
  if (!has_gradients) return;
  results_gradient = place(tile * product.outputs);
  if (product.has_input_gradient) input_gradient = place(rows * product.inputs);
  if (!product.has_weight_gradients) return;
  const std::int64_t kernel = product.inputs * product.outputs;
  const std::int64_t bias = product.has_bias ? product.outputs : 0;
  // Gradients that are those of a parameter as they are go to the arena at once, and have no place here.
  if (product.kernel_entry == LastProduct::kNoEntry) kernel_gradient = place(kernel);
  if (product.bias_entry == LastProduct::kNoEntry) bias_gradient = place(bias);
  if (tile == rows) return;
  kernel_part = place(kernel);
  bias_part = place(bias);
}

ProductTiles::ProductTiles(std::int64_t rows_at_once, compute::Backend& backend)
    : rows_at_once_(rows_at_once), backend_(backend), block_(backend.memory()) {
  HOLDFAST_ASSERT(rows_at_once >= 1);
}

std::size_t ProductTiles::planned_floats(const LastProduct& product, std::int64_t rows, std::int64_t rows_at_once,
                                         bool has_gradients) {
  return Layout(product, rows, rows_at_once, has_gradients).floats;
}

void ProductTiles::make_operation(std::int64_t rows) {
  const bool trains = has_gradients_ && product_.has_weight_gradients;
  const bool reaches_input = has_gradients_ && product_.has_input_gradient;
  // The passes of an operation are fixed when it is made, so an evaluation has other ones than a training step.
  std::unique_ptr<compute::DenseOperation>& made = operations_[{rows, trains, reaches_input}];
  if (made) return;
  made = backend_.dense(
      {.rows = rows, .inputs = product_.inputs, .outputs = product_.outputs, .has_bias = product_.has_bias},
      {.training = trains, .input_gradient = reaches_input});
}

compute::DenseOperation& ProductTiles::operation(std::int64_t rows) const {
  return *operations_.at(
      {rows, has_gradients_ && product_.has_weight_gradients, has_gradients_ && product_.has_input_gradient});
}

void ProductTiles::make_operations(const LastProduct& product, std::int64_t rows, bool has_gradients) {
  HOLDFAST_ASSERT(rows >= 1);
  product_ = product;
  rows_ = rows;
  has_gradients_ = has_gradients;
  if (rows >= rows_at_once_) make_operation(rows_at_once_);
  if (rows % rows_at_once_ != 0) make_operation(rows % rows_at_once_);
}

void ProductTiles::prepare(const LastProduct& product, std::int64_t rows, bool has_gradients,
                           std::vector<std::uint64_t>& key) {
  make_operations(product, rows, has_gradients);
  const Layout layout(product, rows, rows_at_once_, has_gradients);
  block_.grow_to(layout.floats);
  const auto address = [&](std::size_t place, bool is_wanted) {
    return has_gradients && is_wanted ? block_.data() + place : nullptr;
  };
  gradients_[0] = address(layout.input_gradient, product.has_input_gradient);
  gradients_[1] = address(layout.kernel_gradient, product.has_weight_gradients);
  gradients_[2] = address(layout.bias_gradient, product.has_weight_gradients && product.has_bias);
  key.push_back(reinterpret_cast<std::uintptr_t>(block_.data()));
}

void ProductTiles::add_parts(const ParameterGradients& sums) {
  const Layout layout(product_, rows_, rows_at_once_, has_gradients_);
  compute::ArrayKernels& kernels = backend_.array_kernels();
  add_to(kernels, block_.data() + layout.kernel_part, product_.inputs * product_.outputs, sums.kernel);
  if (product_.has_bias) add_to(kernels, block_.data() + layout.bias_part, product_.outputs, sums.bias);
}

void ProductTiles::run(const Operands& operands, const ParameterGradients& parameters,
                       const std::function<void(const Tile& tile)>& loss) {
  const Layout layout(product_, rows_, rows_at_once_, has_gradients_);
  const bool has_weights = has_gradients_ && product_.has_weight_gradients;
  const bool has_input = has_gradients_ && product_.has_input_gradient;
  // The caller gives the places in the arena anew for each shard, and gradients() must return what was written.
  if (has_weights && parameters.kernel != nullptr) gradients_[1] = parameters.kernel;
  if (has_weights && parameters.bias != nullptr) gradients_[2] = parameters.bias;
  const ParameterGradients sums = {.kernel = gradients_[1], .bias = gradients_[2]};
  const ParameterGradients parts = {.kernel = block_.data() + layout.kernel_part,
                                    .bias = block_.data() + layout.bias_part};
  float* const results = block_.data() + layout.results;
  float* const gradient = has_gradients_ ? block_.data() + layout.results_gradient : nullptr;
  for (std::int64_t number = 0; number * rows_at_once_ < rows_; ++number) {
    const std::int64_t first = number * rows_at_once_;
    const std::int64_t rows = std::min(rows_at_once_, rows_ - first);
    compute::DenseOperation& product = operation(rows);
    const float* const input = operands.input + first * product_.inputs;
    product.forward(input, operands.kernel, operands.bias, results);
    // Reads the results and writes their gradient. Both are overwritten by the next tile.
    loss({.number = number, .first = first, .rows = rows, .results = results, .gradient = gradient});
    if (has_weights) {
      // The first tile begins the sums, so that nothing has to be cleared.
      const ParameterGradients& into = number == 0 ? sums : parts;
      product.backward_weights(input, gradient, into.kernel, into.bias);
      if (number > 0) add_parts(sums);
    }
    if (has_input) product.backward_input(operands.kernel, gradient, gradients_[0] + first * product_.inputs);
  }
}

}  // namespace holdfast
