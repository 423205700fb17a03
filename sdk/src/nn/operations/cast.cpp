// Integers of samples reach a model as i32. A model that computes with them as numbers says so by a cast, so that ids
// are never taken for numbers.

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/operation.h"
#include "nn/operations/operation_registry.h"

namespace holdfast {

namespace {

// Integers as floats. It has no gradient: integers are not trained.
class CastOperation final : public Operation {
 public:
  std::string name() const override { return "cast"; }
  bool takes_integers() const override { return true; }
  bool passes_gradient() const override { return false; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    ValueSpec spec = *inputs[0];
    spec.dtype = DType::f32;
    return {spec};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { return {std::nullopt}; }
  void write_config(ConfigWriter&) const override {}
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const ValueSpec& spec = *maker.inputs[0];
    const std::int64_t elements = spec.shape.element_count();
    // A value has no gaps between samples, so a row has as many words as elements.
    const compute::RowConversion conversion = {.from = spec.dtype,
                                               .to = DType::f32,
                                               .rows = spec.has_samples ? maker.samples : 1,
                                               .elements = elements,
                                               .row_words = elements};
    return make_function_kernel([&kernels = maker.backend.array_kernels(), conversion](const KernelArrays& arrays) {
      kernels.convert(conversion, arrays.input(0), arrays.output(0));
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> make_cast() {
  return std::make_shared<const CastOperation>();
}

Value cast(const Value& x, DType dtype) {
  // Inputs of bf16 are converted to f32 before the first operation, so nothing is left to do.
  if (x.dtype() == dtype || (dtype == DType::f32 && x.dtype() == DType::bf16)) return x;
  if (dtype == DType::f32) return apply_one(make_cast(), {x});
  throw Error(ErrorCode::invalid_argument,
              fmt::format("cast() makes f32 of integers, and not {} of {}", name(dtype), name(x.dtype())));
}

}  // namespace holdfast
