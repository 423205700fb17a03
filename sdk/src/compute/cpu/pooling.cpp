// Pooling on CPUs by oneDNN: maximum, or average over the elements of a window that are not padding. Where
// each maximum was found is kept in a workspace for the backward pass, in oneDNN's own format.

#include <fmt/format.h>
#include <optional>

#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"
#include "compute/window.h"

namespace holdfast::compute {

static std::string describe(const std::string& pass, const PoolingShape& shape) {
  return fmt::format("{} of {} pooling [{}, {}, {}, {}], windows [{}, {}], strides [{}, {}], padding {}", pass,
                     shape.kind == PoolingKind::maximum ? "maximum" : "average", shape.samples, shape.height,
                     shape.width, shape.channels, shape.pool_height, shape.pool_width, shape.stride_height,
                     shape.stride_width, name(shape.padding));
}

namespace {

class CpuPooling : public PoolingOperation {
 public:
  CpuPooling(CpuContext& context, const PoolingShape& shape, Use use) {
    const std::string operation = describe("a pass", shape);
    // oneDNN's own sentence names no shape.
    with_named_errors(operation, [&] { make(context, operation, shape, use); });
  }

  void forward(const float* input, float* output) override {
    forward_->run({{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, output}, {DNNL_ARG_WORKSPACE, workspace()}});
  }

  void backward(const float* output_gradient, float* input_gradient) override {
    backward_->run(
        {{DNNL_ARG_DIFF_DST, output_gradient}, {DNNL_ARG_DIFF_SRC, input_gradient}, {DNNL_ARG_WORKSPACE, workspace()}});
  }

 private:
  using Forward = dnnl::pooling_forward;
  using Backward = dnnl::pooling_backward;

  void make(CpuContext& context, const std::string& operation, const PoolingShape& shape, Use use) {
    const Window rows = slide(shape.height, shape.pool_height, shape.stride_height, shape.padding);
    const Window columns = slide(shape.width, shape.pool_width, shape.stride_width, shape.padding);
    const MemoryDesc input = float_desc({shape.samples, shape.channels, shape.height, shape.width}, Tag::nhwc);
    const MemoryDesc output = float_desc({shape.samples, shape.channels, rows.count, columns.count}, Tag::nhwc);
    const Dims pool = {shape.pool_height, shape.pool_width};
    const Dims strides = {shape.stride_height, shape.stride_width};
    const Dims pad_before = {rows.pad_before, columns.pad_before};
    const Dims pad_after = {rows.pad_after, columns.pad_after};
    const auto algorithm = shape.kind == PoolingKind::maximum ? dnnl::algorithm::pooling_max
                                                              : dnnl::algorithm::pooling_avg_exclude_padding;
    // Only a backward pass needs to know where the maxima were.
    const auto kind = use.input_gradient ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward::primitive_desc forward_desc(
        Forward::desc(kind, algorithm, input, output, strides, pool, pad_before, pad_after), scratch_attributes(),
        context.engine());
    // Only maximum pooling in training has one: the others keep nothing for a backward pass.
    const MemoryDesc workspace = forward_desc.workspace_desc();
    std::vector<Operand> operands = {{DNNL_ARG_SRC, input, input},
                                     {DNNL_ARG_DST, output, output, Operand::Role::output}};
    add_workspace(operands, workspace, Operand::Role::output);
    forward_ = Primitive::make<Forward>(context, operation, forward_desc, operands);
    // Pooling has no parameters, so without this gradient it has no backward pass.
    if (!use.input_gradient) return;

    // The memory is ours and lives as long as the operation: the backward pass may come much later.
    workspace_bytes_ = workspace.get_size();
    context.count_kept(workspace_bytes_);
    const Backward::primitive_desc backward_desc(
        Backward::desc(algorithm, input, output, strides, pool, pad_before, pad_after), scratch_attributes(),
        context.engine(), forward_desc);
    operands = {{DNNL_ARG_DIFF_DST, output, output}, {DNNL_ARG_DIFF_SRC, input, input, Operand::Role::output}};
    add_workspace(operands, workspace, Operand::Role::input);
    backward_ = Primitive::make<Backward>(context, operation, backward_desc, operands);
  }

  static void add_workspace(std::vector<Operand>& operands, const MemoryDesc& workspace, Operand::Role role) {
    if (workspace.get_size() > 0) operands.push_back({DNNL_ARG_WORKSPACE, workspace, workspace, role});
  }

  // Grown at the first run and not when the operation is made, so that plans which only count memory take none.
  const float* workspace() {
    workspace_.grow_to((workspace_bytes_ + sizeof(float) - 1) / sizeof(float));
    return workspace_.data();
  }

  std::size_t workspace_bytes_ = 0;
  AlignedFloats workspace_;  // the position of each maximum, in oneDNN's own format
  std::optional<Primitive> forward_;
  std::optional<Primitive> backward_;
};

}  // namespace

std::unique_ptr<PoolingOperation> make_cpu_pooling(CpuContext& context, const PoolingShape& shape, Use use) {
  return std::make_unique<CpuPooling>(context, shape, use);
}

}  // namespace holdfast::compute
