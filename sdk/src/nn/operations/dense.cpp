#include "nn/operations/operations.h"
#include "nn/operations/product_operation.h"

namespace holdfast {

namespace {

class DenseProduct final : public ProductOperation<compute::DenseOperation> {
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
                                .has_bias = maker.inputs[2].has_value()},
                               maker.use);
  }
};

}  // namespace

Value dense(const Value& input, const Value& kernel, const MaybeValue& bias) {
  return apply_one(std::make_shared<const DenseProduct>(), {input, kernel, bias});
}

}  // namespace holdfast
