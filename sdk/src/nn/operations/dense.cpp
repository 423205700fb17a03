#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/operations.h"
#include "nn/operations/product_operation.h"

namespace holdfast {

namespace {

// Layers alone make it: it stands in no file, so its operands were checked.
class DenseProduct : public ProductOperation<compute::DenseOperation> {
 public:
  std::string name() const override { return "dense"; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    std::vector<std::int64_t> extents = inputs[0]->shape.extents();
    // Dense and matmul() have checked the shapes, and their sentences name the layer or the function.
    HOLDFAST_ASSERT(!extents.empty() && inputs[1]->shape.rank() == 2 && inputs[1]->shape[0] == extents.back());
    extents.back() = inputs[1]->shape[1];
    return {{.shape = Shape(std::move(extents)), .dtype = DType::f32, .has_samples = inputs[0]->has_samples}};
  }

  std::unique_ptr<compute::DenseOperation> make_object(const KernelMaker& maker) const override {
    // All axes before the last one are rows, so the operation takes values of any rank.
    return maker.backend.dense({.rows = maker.rows(0),
                                .inputs = maker.channels(0),
                                .outputs = maker.channels(1),
                                .has_bias = maker.inputs.size() > 2 && maker.inputs[2].has_value()},
                               maker.use);
  }
};

// matmul(). It may stand between layers, so its operands may come from a file.
class MatrixProduct final : public DenseProduct {
 public:
  std::string name() const override { return "matmul"; }
  bool takes_inputs(std::size_t count) const override { return count == 2; }
  void write_config(ConfigWriter&) const override {}

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const ValueSpec& x = *inputs[0];
    const ValueSpec& matrix = *inputs[1];
    // A matrix with samples would be a product for each of them, which the kernels of a dense layer do not have.
    const bool fits = x.shape.rank() >= 1 && matrix.shape.rank() == 2 && !matrix.has_samples &&
                      x.shape[x.shape.rank() - 1] == matrix.shape[0];
    if (fits) return DenseProduct::outputs(inputs);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("matmul() multiplies a value [..., inputs] by a matrix [inputs, outputs] without samples, not {} "
                    "by {}; {}",
                    x.shape.to_string(), matrix.shape.to_string(),
                    matrix.has_samples ? "in a file, a product of two values with samples is the operation \"einsum\""
                                       : "permute() or reshape() one of them"));
  }
};

}  // namespace

std::shared_ptr<const Operation> make_matmul() {
  return std::make_shared<const MatrixProduct>();
}

Value matmul(const Value& x, const Value& matrix) {
  if (matrix.has_samples() || matrix.shape().rank() > 2) return batched_matmul(x, matrix);
  return apply_one(make_matmul(), {x, matrix});
}

Value dense(const Value& input, const Value& kernel, const MaybeValue& bias) {
  return apply_one(std::make_shared<const DenseProduct>(), {input, kernel, bias});
}

}  // namespace holdfast
