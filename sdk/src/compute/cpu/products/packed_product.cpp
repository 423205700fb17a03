// A matrix product of oneDNN 2.6 reads its kernel where it lies, or packs it anew each time. Its convolution by a
// kernel of one pixel takes one that was packed before, and computes the same sums, one for each pixel and filter. So
// the rows of the product are the pixels of one image. On AVX2 it was 1.3 to 2.6 times as fast for 16 to 128 rows, on
// AVX-512 1.7 times for 32: docs/measurements.md. The order of its sums is another one, which arithmetic.txt names.

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "compute/cpu/kept_array.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"

namespace holdfast::compute {
namespace {

using Convolution = dnnl::convolution_forward;

// The one implementation that was measured for the instructions of this processor; empty without one. With other
// numbers of channels oneDNN chooses slow ones.
std::string_view packed_implementation() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  if (isa == dnnl::cpu_isa::avx2) return "jit_1x1:avx2";
  // Sets contain others, bit by bit.
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(isa) & needed) == needed ? "brgconv_1x1:avx512_core" : "";
}

struct PackedArrays {
  explicit PackedArrays(const RepeatedProductShape& shape)
      : input(float_desc({1, shape.inputs, 1, shape.rows}, Tag::nhwc)),
        kernel(float_desc({shape.outputs, shape.inputs, 1, 1}, shape.is_transposed ? Tag::oihw : Tag::hwio)),
        output(float_desc({1, shape.outputs, 1, shape.rows}, Tag::nhwc)) {
    if (shape.has_bias) bias = float_desc({shape.outputs}, Tag::a);
  }

  std::optional<Convolution::primitive_desc> describe_convolution(const dnnl::engine& engine) const {
    const MemoryDesc packed(kernel.dims(), DataType::f32, Tag::any);
    const Convolution::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, input, packed,
                                 bias, output, {1, 1}, {0, 0}, {0, 0});
    // `true` allows an empty description: a shape that oneDNN does not take in this way is not an error.
    Convolution::primitive_desc primitive(desc, scratch_attributes(), engine, true);
    if (primitive.get(true) == nullptr || primitive.impl_info_str() != packed_implementation()) return std::nullopt;
    return primitive;
  }

  MemoryDesc input, kernel, output;
  MemoryDesc bias;  // empty without a bias
};

class PackedProduct final : public RepeatedProductOperation {
 public:
  PackedProduct(CpuContext& context, const std::string& operation, const PackedArrays& arrays,
                const Convolution::primitive_desc& desc)
      : kernel_(context, operation, arrays.kernel, desc.weights_desc()) {
    std::vector<Operand> operands = {
        {DNNL_ARG_SRC, arrays.input, arrays.input},
        {DNNL_ARG_WEIGHTS, desc.weights_desc(), desc.weights_desc()},
        {DNNL_ARG_DST, arrays.output, arrays.output, Operand::Role::output},
    };
    if (arrays.bias) operands.push_back({DNNL_ARG_BIAS, arrays.bias, arrays.bias});
    with_named_errors(operation, [&] { product_ = Primitive::make<Convolution>(context, operation, desc, operands); });
  }

  void set_kernel(const float* kernel) override { kernel_.set(kernel); }
  void run(const float* input, const float* bias, float* output) override {
    product_->run(
        {{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, kernel_.data()}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, output}});
  }

 private:
  KeptArray kernel_;
  std::optional<Primitive> product_;
};

}  // namespace

bool packs_products(const CpuContext& context) {
  return !context.is_bf16() && !packed_implementation().empty();
}

std::unique_ptr<RepeatedProductOperation> make_cpu_packed_product(CpuContext& context,
                                                                  const RepeatedProductShape& shape) {
  if (!packs_products(context)) return nullptr;
  const std::string operation =
      fmt::format("products [{}, {}] x [{}, {}]", shape.rows, shape.inputs, shape.inputs, shape.outputs);
  const PackedArrays arrays(shape);
  std::optional<Convolution::primitive_desc> desc;
  with_named_errors(operation, [&] { desc = arrays.describe_convolution(context.engine()); });
  if (!desc) return nullptr;
  return std::make_unique<PackedProduct>(context, operation, arrays, *desc);
}

}  // namespace holdfast::compute
