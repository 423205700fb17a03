// oneDNN's matrix product takes strides for all axes, so that the heads of an attention are read where the projections
// have left them. A matrix that is the same for all indices of an axis has an extent of 1 there, which oneDNN repeats.
// At bf16 factors are rounded into scratch memory just before the product, with their axes in the same order.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"
#include "compute/cpu/products/factor_layout.h"

namespace holdfast::compute {

namespace {

MemoryDesc matrices(const BatchedProductShape& shape, const MatrixPlaces& places, std::int64_t rows,
                    std::int64_t columns) {
  Dims extents;
  Dims strides;
  for (std::size_t axis = 0; axis < shape.batch_axes; ++axis) {
    const bool is_repeated = places.batch[axis] == 0;
    extents.push_back(is_repeated ? 1 : shape.batch[axis]);
    // The stride of an axis of extent 1 moves nothing, but a stride of 0 does not describe an array.
    strides.push_back(is_repeated ? rows * columns : places.batch[axis]);
  }
  extents.insert(extents.end(), {rows, columns});
  strides.insert(strides.end(), {places.row, places.column});
  return MemoryDesc(extents, dnnl::memory::data_type::f32, strides);
}

// A factor as the primitive takes it at bf16. A rounded copy has no gaps, and the order of the caller's axes in memory,
// so that rounding moves along rows.
MemoryDesc rounded(const MemoryDesc& callers) {
  const Dims extents = callers.dims();
  const auto& given = callers.data.format_desc.blocking.strides;
  std::vector<std::size_t> axes(extents.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  std::ranges::stable_sort(axes, [&](std::size_t a, std::size_t b) { return given[a] > given[b]; });
  Dims strides(extents.size());
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    strides[axes[i]] = stride;
    stride *= extents[axes[i]];
  }
  return MemoryDesc(extents, DataType::bf16, strides);
}

ProductFactors factors_of(const CpuContext& context, const ProductFactors& callers) {
  if (context.is_bf16()) return {.left = rounded(callers.left), .right = rounded(callers.right)};
  // Matrices of a batch are small, and lie among each other.
  return callers.left.dims().size() == 2 ? spread_in_cache(callers) : callers;
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
      const auto [left_factor, right_factor] = factors_of(context, {.left = left, .right = right});
      const dnnl::matmul::primitive_desc desc({left_factor, right_factor, result}, scratch_attributes(),
                                              context.engine());
      // Only factors get another layout or type. The result is written where and as the caller has it.
      primitive_ = Primitive::make<dnnl::matmul>(context, operation, desc,
                                                 {{DNNL_ARG_SRC, left, left_factor},
                                                  {DNNL_ARG_WEIGHTS, right, right_factor},
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
