// oneDNN's matrix product takes strides for all axes, so that the heads of an attention are read where the projections
// have left them. A matrix that is the same for all indices of an axis has an extent of 1 there, which oneDNN repeats.

#include <fmt/format.h>

#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"

namespace holdfast::compute {

namespace {

MemoryDesc matrices(const BatchedProductShape& shape, const MatrixPlaces& places, std::int64_t rows,
                    std::int64_t columns) {
  Dims extents;
  Dims strides;
  for (std::size_t axis = 0; axis < shape.batch_axes; ++axis) {
    const bool is_repeated = places.batch[axis] == 0;
    extents.push_back(is_repeated ? 1 : shape.batch[axis]);
    // The stride of an axis of extent 1 moves nothing, but 0 would be no description of an array.
    strides.push_back(is_repeated ? rows * columns : places.batch[axis]);
  }
  extents.insert(extents.end(), {rows, columns});
  strides.insert(strides.end(), {places.row, places.column});
  return MemoryDesc(extents, dnnl::memory::data_type::f32, strides);
}

std::string describe(const BatchedProductShape& shape) {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < shape.batch_axes; ++axis) count *= shape.batch[axis];
  return fmt::format("{} products [{}, {}] x [{}, {}]", count, shape.rows, shape.inner, shape.inner, shape.columns);
}

class CpuBatchedProduct final : public BatchedProductOperation {
 public:
  CpuBatchedProduct(CpuContext& context, const BatchedProductShape& shape) {
    const std::string operation = describe(shape);
    with_named_errors(operation, [&] {
      const MemoryDesc left = matrices(shape, shape.left, shape.rows, shape.inner);
      const MemoryDesc right = matrices(shape, shape.right, shape.inner, shape.columns);
      const MemoryDesc result = matrices(shape, shape.result, shape.rows, shape.columns);
      const dnnl::matmul::primitive_desc desc({left, right, result}, scratch_attributes(), context.engine());
      primitive_ = Primitive::make<dnnl::matmul>(context, operation, desc,
                                                 {{DNNL_ARG_SRC, left, left},
                                                  {DNNL_ARG_WEIGHTS, right, right},
                                                  {DNNL_ARG_DST, result, result, Operand::Role::output}});
    });
  }

  void run(const float* left, const float* right, float* result) override {
    primitive_->run({{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
  }

 private:
  std::optional<Primitive> primitive_;
};

}  // namespace

std::unique_ptr<BatchedProductOperation> make_cpu_batched_product(CpuContext& context,
                                                                  const BatchedProductShape& shape) {
  return std::make_unique<CpuBatchedProduct>(context, shape);
}

}  // namespace holdfast::compute
