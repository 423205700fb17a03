#include <fmt/format.h>

#include "nn/graph/operation.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

// Row-major order is kept, so the memory stays as it is.
class ReshapeOperation final : public Operation {
 public:
  explicit ReshapeOperation(Shape shape) : shape_(std::move(shape)) {}

  std::string name() const override { return "reshape"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    // A file may hold any two shapes, so the counts are compared each time.
    if (inputs[0]->shape.element_count() != shape_.element_count()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a value of shape {} cannot be reshaped to {}, which has another number of elements",
                              inputs[0]->shape.to_string(), shape_.to_string()));
    }
    return {{.shape = shape_, .dtype = inputs[0]->dtype, .has_samples = inputs[0]->has_samples}};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    return {reshape(*request.output_gradients[0], request.inputs[0]->shape())};
  }
  void write_config(ConfigWriter& config) const override { config.integers("shape", shape_.extents()); }
  // No element is read, so its type does not matter.
  bool takes_integers() const override { return true; }
  bool is_view() const override { return true; }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker&) const override { return nullptr; }

 private:
  const Shape shape_;
};

}  // namespace

std::shared_ptr<const Operation> read_reshape(ConfigReader& config) {
  return std::make_shared<const ReshapeOperation>(Shape(config.integers("shape")));
}

Value reshape(const Value& input, const Shape& shape) {
  return apply_one(std::make_shared<const ReshapeOperation>(shape), {input});
}

}  // namespace holdfast
