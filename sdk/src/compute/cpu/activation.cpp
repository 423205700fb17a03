// Activations on CPUs, by oneDNN's element-wise primitives and its softmax over the channels of a row. Except
// for GELU the derivative is computed from the output (`_use_dst_for_bwd`), so the input need not be kept for
// the backward pass.

#include "holdfast/compute/activation.h"

#include <fmt/format.h>
#include <optional>

#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

bool is_differentiated_by_output(Activation activation) {
  return activation != Activation::gelu;
}

static dnnl::algorithm algorithm_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    case Activation::tanh:
      return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
    case Activation::sigmoid:
      return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    case Activation::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::linear:
    case Activation::softmax:
      break;
  }
  HOLDFAST_ASSERT(false);
}

namespace {

class CpuActivation : public ActivationOperation {
 public:
  CpuActivation(CpuContext& context, const ActivationShape& shape, Use use)
      : kept_argument_(is_differentiated_by_output(shape.activation) ? DNNL_ARG_DST : DNNL_ARG_SRC) {
    const std::string operation = fmt::format("{} of [{}, {}]", name(shape.activation), shape.rows, shape.channels);
    with_named_errors(operation, [&] {
      if (shape.activation == Activation::softmax) {
        make_softmax(context, operation, shape, use);
      } else {
        make_elementwise(context, operation, shape, use);
      }
    });
  }

  void forward(const float* input, float* output) override {
    forward_->run({{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, output}});
  }

  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    backward_->run({{kept_argument_, kept}, {DNNL_ARG_DIFF_DST, output_gradient}, {DNNL_ARG_DIFF_SRC, input_gradient}});
  }

 private:
  void make_elementwise(CpuContext& context, const std::string& operation, const ActivationShape& shape, Use use) {
    const MemoryDesc array = float_desc({shape.rows * shape.channels}, Tag::a);
    const dnnl::algorithm algorithm = algorithm_of(shape.activation);
    const dnnl::eltwise_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, array, 0.0F, 0.0F}, scratch_attributes(), context.engine());
    forward_ = make_forward<dnnl::eltwise_forward>(context, operation, forward, array);
    if (!use.input_gradient) return;
    const dnnl::eltwise_backward::primitive_desc backward({algorithm, array, array, 0.0F, 0.0F}, scratch_attributes(),
                                                          context.engine(), forward);
    backward_ = make_backward<dnnl::eltwise_backward>(context, operation, backward, array);
  }

  void make_softmax(CpuContext& context, const std::string& operation, const ActivationShape& shape, Use use) {
    constexpr int kAxis = 1;
    const MemoryDesc array = float_desc({shape.rows, shape.channels}, Tag::ab);
    const auto algorithm = dnnl::algorithm::softmax_accurate;
    const dnnl::softmax_v2_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, array, array, kAxis}, scratch_attributes(), context.engine());
    forward_ = make_forward<dnnl::softmax_v2_forward>(context, operation, forward, array);
    if (!use.input_gradient) return;
    const dnnl::softmax_v2_backward::primitive_desc backward({algorithm, array, array, array, kAxis},
                                                             scratch_attributes(), context.engine(), forward);
    backward_ = make_backward<dnnl::softmax_v2_backward>(context, operation, backward, array);
  }

  template <class Kind>
  static Primitive make_forward(CpuContext& context, const std::string& operation,
                                const typename Kind::primitive_desc& desc, const MemoryDesc& array) {
    return Primitive::make<Kind>(context, operation, desc,
                                 {{DNNL_ARG_SRC, array, array}, {DNNL_ARG_DST, array, array, Operand::Role::output}});
  }

  template <class Kind>
  Primitive make_backward(CpuContext& context, const std::string& operation, const typename Kind::primitive_desc& desc,
                          const MemoryDesc& array) const {
    return Primitive::make<Kind>(context, operation, desc,
                                 {{kept_argument_, array, array},
                                  {DNNL_ARG_DIFF_DST, array, array},
                                  {DNNL_ARG_DIFF_SRC, array, array, Operand::Role::output}});
  }

  const int kept_argument_;
  std::optional<Primitive> forward_;
  std::optional<Primitive> backward_;
};

}  // namespace

std::unique_ptr<ActivationOperation> make_cpu_activation(CpuContext& context, const ActivationShape& shape, Use use) {
  return std::make_unique<CpuActivation>(context, shape, use);
}

}  // namespace holdfast::compute
