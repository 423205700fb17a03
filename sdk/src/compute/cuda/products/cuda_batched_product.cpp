// Products of many matrices on CUDA devices. The library takes one distance between matrices, and attention has two:
// those of samples and heads. So factors and results that do not lie one after another are copied in the workspace,
// which takes a small part of the time of the products. docs/decisions/device-arithmetic.md

#include <fmt/format.h>

#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/products/matrix_product.h"

namespace holdfast::compute {
namespace {

// The matrices of one array, and whether they lie as the library takes them.
class Matrices {
 public:
  Matrices(const BatchedProductShape& shape, const MatrixPlaces& places, std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns) {
    copy_.axes = shape.batch_axes + 2;
    for (std::size_t axis = 0; axis < shape.batch_axes; ++axis) {
      copy_.extents[axis] = shape.batch[axis];
      copy_.from_strides[axis] = places.batch[axis];
      batches_ *= shape.batch[axis];
      // A stride of 0 repeats a matrix: a weight that all samples have.
      has_one_ = has_one_ && (places.batch[axis] == 0 || shape.batch[axis] == 1);
    }
    copy_.extents[shape.batch_axes] = rows;
    copy_.extents[shape.batch_axes + 1] = columns;
    copy_.from_strides[shape.batch_axes] = places.row;
    copy_.from_strides[shape.batch_axes + 1] = places.column;
    std::int64_t stride = 1;
    for (std::size_t axis = copy_.axes; axis-- > 0;) {
      copy_.to_strides[axis] = stride;
      stride *= copy_.extents[axis];
    }
    // A matrix of one row or column lies either way, whatever its stride is.
    is_plain_ = lies(places.row == columns || rows == 1, places.column == 1 || columns == 1);
    is_transposed_ = !is_plain_ && lies(places.row == 1 || rows == 1, places.column == rows || columns == 1);
  }

  bool is_copied() const { return !is_plain_ && !is_transposed_; }
  bool is_transposed() const { return is_transposed_; }
  // One matrix for all products, which a copy would repeat.
  bool has_one() const { return has_one_ && !is_copied(); }
  std::int64_t batches() const { return batches_; }
  std::size_t copied_bytes() const {
    return is_copied() ? round_to_block(static_cast<std::size_t>(batches_ * rows_ * columns_) * sizeof(float)) : 0;
  }

  StridedCopy to_plain() const { return copy_; }
  // The same walk from the copy back to the array.
  StridedCopy from_plain() const {
    StridedCopy back = copy_;
    std::swap(back.from_strides, back.to_strides);
    return back;
  }

 private:
  // Whether the matrices follow one another without gaps, if one of them has none.
  bool lies(bool are_rows_plain, bool are_columns_plain) const {
    bool lies = are_rows_plain && are_columns_plain;
    for (std::size_t axis = 0; axis + 2 < copy_.axes; ++axis) {
      lies = lies && (has_one_ || copy_.extents[axis] == 1 || copy_.from_strides[axis] == copy_.to_strides[axis]);
    }
    return lies;
  }

  const std::int64_t rows_;
  const std::int64_t columns_;
  std::int64_t batches_ = 1;
  bool has_one_ = true;
  StridedCopy copy_;
  bool is_plain_ = false;
  bool is_transposed_ = false;
};

class CudaBatchedProduct final : public BatchedProductOperation {
 public:
  CudaBatchedProduct(CudaContext& context, Precision precision, const BatchedProductShape& shape)
      : context_(context),
        left_(shape, shape.left, shape.rows, shape.inner),
        right_(shape, shape.right, shape.inner, shape.columns),
        result_(shape, shape.result, shape.rows, shape.columns),
        kernels_(context),
        product_(context,
                 fmt::format("{} products [{}, {}] x [{}, {}]", result_.batches(), shape.rows, shape.inner, shape.inner,
                             shape.columns),
                 {.rows = shape.rows,
                  .inner = shape.inner,
                  .columns = shape.columns,
                  .is_left_transposed = left_.is_transposed(),
                  .is_right_transposed = right_.is_transposed(),
                  .precision = precision,
                  .batches = result_.batches(),
                  .has_one_left = left_.has_one(),
                  .has_one_right = right_.has_one()}) {
    // A result with the columns side by side is either plain or copied.
    HOLDFAST_ASSERT(!result_.is_transposed());
    context.reserve_workspace(round_to_block(product_.workspace_bytes()) + left_.copied_bytes() +
                              right_.copied_bytes() + result_.copied_bytes());
  }

  void run(const float* left, const float* right, float* result) override {
    // Held over copies and product: another thread would use the workspace between them.
    const CudaContext::StreamLock lock = context_.lock_stream();
    std::byte* place = context_.workspace() + round_to_block(product_.workspace_bytes());
    left = copied(left_, left, place);
    right = copied(right_, right, place);
    float* const written = result_.is_copied() ? reinterpret_cast<float*>(place) : result;
    product_.run({.left = left, .right = right, .result = written}, context_.workspace());
    if (result_.is_copied()) kernels_.copy(result_.from_plain(), written, result);
  }

 private:
  // The matrices one after another: the array itself, or a copy at `place`, which moves on.
  const float* copied(const Matrices& matrices, const float* array, std::byte*& place) {
    if (!matrices.is_copied()) return array;
    float* const copy = reinterpret_cast<float*>(place);
    kernels_.copy(matrices.to_plain(), array, copy);
    place += matrices.copied_bytes();
    return copy;
  }

  CudaContext& context_;
  const Matrices left_;
  const Matrices right_;
  const Matrices result_;
  CudaArrayKernels kernels_;
  MatrixProduct product_;
};

}  // namespace

std::unique_ptr<BatchedProductOperation> make_cuda_batched_product(CudaContext& context, Precision precision,
                                                                   const BatchedProductShape& shape) {
  return std::make_unique<CudaBatchedProduct>(context, precision, shape);
}

}  // namespace holdfast::compute
