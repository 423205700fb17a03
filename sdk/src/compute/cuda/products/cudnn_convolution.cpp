// Builds one pass of a convolution as a cuDNN graph, chooses its engine and runs it. The engine is the first
// one of the heuristic, and then of its fallback, that gives the same bits each time. Nothing is timed,
// because timing would make the bits a matter of chance. docs/decisions/convolution.md

#include "compute/cuda/products/cudnn_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compute/cuda/products/bfloat16_arrays.h"
#include "compute/cuda/products/image_layout.h"
#include "compute/cuda/products/transposed_arrays.h"
#include "compute/cuda/runtime/array_alignment.h"

namespace holdfast::compute {
namespace {

// Engines that need more workspace than this are seldom faster, except for those that copy the arrays into another
// order of axes. Without tensor cores nearly all engines for large images do that (9.19: one copy of both).
constexpr std::int64_t kEngineWorkspaceBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostCopiesOfImages = 2;
// How many engines are asked of the heuristic.
constexpr std::int64_t kMaximumEngines = 128;
// This engine has a plan for every shape and needs no workspace. The heuristic lists it last, except for small shapes.
// The fallback list, which is not in order of speed, has it before others (9.19).
constexpr std::int64_t kPlainestEngine = 0;

std::int64_t most_workspace_bytes(const ConvolutionShape& shape, Precision precision) {
  const std::int64_t element_bytes = precision == Precision::bf16 ? sizeof(Bfloat16) : sizeof(float);
  const std::int64_t elements = elements_of(layout_of_input(shape)) + elements_of(layout_of_output(shape));
  return std::max(kEngineWorkspaceBytes, kMostCopiesOfImages * elements * element_bytes);
}

std::vector<CudnnDescriptor> engine_of(const CudnnDescriptor& configuration) {
  return configuration.descriptors_of(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
}

bool is_plainest(const CudnnDescriptor& configuration) {
  const auto engine = engine_of(configuration);
  return !engine.empty() && engine.front().integer_of(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == kPlainestEngine;
}

// The numbers by which arrays are bound to the plan; any three that differ would do.
constexpr std::int64_t kImages = 'x';
constexpr std::int64_t kKernel = 'w';
constexpr std::int64_t kOutputs = 'y';

CudnnDescriptor tensor(std::int64_t identity, Precision precision, const ImageLayout& layout, const std::string& what) {
  // Copies are in our workspace, aligned as we choose.
  const std::int64_t alignment = precision == Precision::bf16 ? kWidestAccess : layout.alignment;
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  tensor.choice(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, image_type(precision))
      .integers(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.extents)
      .integers(CUDNN_ATTR_TENSOR_STRIDES, layout.strides)
      .integer(CUDNN_ATTR_TENSOR_UNIQUE_ID, identity)
      .integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .finalize();
  return tensor;
}

CudnnDescriptor make_convolution(const ConvolutionShape& shape, const std::string& what) {
  std::vector<std::int64_t> before, after, strides, dilations;
  const ConvolutionAxes axes(shape);
  for (const ConvolutionAxis& axis : axes.needed()) {
    before.push_back(axis.window.pad_before);
    after.push_back(axis.window.pad_after);
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation);
  }
  CudnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, what);
  convolution.integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(strides.size()))
      .choice(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      // What other frameworks call a convolution: the kernel is not reversed.
      .choice(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before)
      .integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after)
      .integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .finalize();
  return convolution;
}

// The three kinds of operation have the same attributes, with different names.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, images, kernel, outputs, alpha, beta;
};

OperationNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionPass::backward_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  HOLDFAST_ASSERT(false);
}

std::string name_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward:
      return "the forward pass";
    case ConvolutionPass::backward_input:
      return "the gradient of the input";
    case ConvolutionPass::backward_weights:
      return "the gradient of the weights";
  }
  HOLDFAST_ASSERT(false);
}

}  // namespace

CudnnConvolution::Graph::Graph(const CudnnTarget& target, const std::string& name, Precision precision,
                               const ConvolutionShape& shape, ConvolutionPass pass)
    : images(tensor(kImages, precision, layout_of_input(shape), fmt::format("the images of {}", name))),
      kernel(tensor(kKernel, precision, layout_of_kernel_copy(shape), fmt::format("the kernel of {}", name))),
      outputs(tensor(kOutputs, precision, layout_of_output(shape), fmt::format("the outputs of {}", name))),
      convolution(make_convolution(shape, fmt::format("the windows of {}", name))),
      operation(names_of(pass).type, name),
      graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, fmt::format("the graph of {}", name)) {
  const OperationNames names = names_of(pass);
  operation.descriptor(names.convolution, convolution)
      .descriptor(names.images, images)
      .descriptor(names.kernel, kernel)
      .descriptor(names.outputs, outputs)
      .number(names.alpha, 1)
      // Results replace what the arrays held, so undefined memory needs no clearing.
      .number(names.beta, 0)
      .finalize();
  // A test describes a device to the library instead of having one.
  if (target.handle != nullptr) graph.handle(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph.descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation).finalize();
}

CudnnConvolution::CudnnConvolution(const std::string& operation, Precision precision, const ConvolutionShape& shape,
                                   ConvolutionPass pass, std::unique_ptr<Graph> graph)
    : operation_(operation),
      precision_(precision),
      most_library_bytes_(most_workspace_bytes(shape, precision)),
      graph_(std::move(graph)) {
  const auto images = [&](const ImageLayout& layout, ConvolutionPass pass_to_it) {
    return Operand{.extent = {.rows = 1, .columns = elements_of(layout)},
                   .alignment = layout.alignment,
                   .is_result = pass == pass_to_it,
                   // Images have the channels last on both sides, so at f32 they need no copy.
                   .copy = precision == Precision::bf16 ? Copy::rounded : Copy::none};
  };
  const Operand kernel = {
      // The whole window and its channels count as rows, so the transposition to cuDNN's order is one of a matrix.
      .extent = {.rows = elements_of(layout_of_kernel_copy(shape)) / shape.filters, .columns = shape.filters},
      .alignment = sizeof(float),
      .is_result = pass == ConvolutionPass::backward_weights,
      // [window, filter] becomes [filter, window], the order of cuDNN's fast engines.
      .copy = Copy::transposed};
  operands_ = {images(layout_of_input(shape), ConvolutionPass::backward_input), kernel,
               images(layout_of_output(shape), ConvolutionPass::forward)};
}

std::size_t CudnnConvolution::copy_bytes(const Operand& operand) const {
  if (operand.copy == Copy::none) return 0;
  const std::size_t element_bytes = precision_ == Precision::bf16 ? sizeof(Bfloat16) : sizeof(float);
  return round_to_block(static_cast<std::size_t>(operand.extent.rows * operand.extent.columns) * element_bytes);
}

std::size_t CudnnConvolution::workspace_bytes() const {
  std::size_t bytes = library_bytes_;
  for (const Operand& operand : operands_) bytes += copy_bytes(operand);
  return bytes;
}

std::optional<CudnnConvolution> CudnnConvolution::find(const CudnnTarget& target, Precision precision,
                                                       const ConvolutionShape& shape, ConvolutionPass pass) {
  const std::string operation = describe_convolution(name_of(pass), shape);
  CudnnConvolution found(operation, precision, shape, pass,
                         std::make_unique<Graph>(target, operation, precision, shape, pass));
  // The heuristic's list is in the order of expected speed. The fallback's only has what works.
  if (found.choose_engine(target, CUDNN_HEUR_MODE_A)) return found;
  if (found.choose_engine(target, CUDNN_HEUR_MODE_FALLBACK)) return found;
  return std::nullopt;
}

bool CudnnConvolution::choose_engine(const CudnnTarget& target, cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, fmt::format("the heuristic for {}", operation_));
  heuristic.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_->graph)
      .choice(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.handle == nullptr) heuristic.descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.description);
  if (!heuristic.finalize_if_possible()) return false;
  auto configurations =
      heuristic.descriptors_of(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMaximumEngines);
  if (mode == CUDNN_HEUR_MODE_FALLBACK) {
    // Engine 0 goes last. The order of the others stays, so that the choice is the same each time.
    std::stable_partition(configurations.begin(), configurations.end(), std::not_fn(is_plainest));
  }
  for (CudnnDescriptor& configuration : configurations) {
    if (take(target, std::move(configuration))) return true;
  }
  return false;
}

bool CudnnConvolution::take(const CudnnTarget& target, CudnnDescriptor configuration) {
  const auto engines = engine_of(configuration);
  // Whether a machine can compile would be a part of the bits.
  if (engines.empty() || engines.front().is_compiled_at_run_time() ||
      !may_run(engines.front().numerical_notes(), precision_)) {
    return false;
  }
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, fmt::format("the plan of {}", operation_));
  // Finalizing a plan is the only way to learn whether an engine takes this shape on this device.
  plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (target.handle == nullptr) {
    plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.description);
  } else {
    plan.handle(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  }
  if (!plan.finalize_if_possible()) return false;
  const std::int64_t workspace = plan.integer_of(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  // All operations share one workspace, so a single greedy engine would cost its memory for the whole run.
  if (workspace > most_library_bytes_) return false;
  library_bytes_ = round_to_block(static_cast<std::size_t>(workspace));
  engine_ = fmt::format("engine {}", engines.front().integer_of(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  configuration_ = std::move(configuration);
  plan_ = std::move(plan);
  return true;
}

void CudnnConvolution::run(CudaContext& context, const CudnnConvolutionArrays& arrays, std::byte* workspace) const {
  // In the order of operands_, kImages first.
  const std::array<const float*, 3> callers = {arrays.images, arrays.kernel, arrays.outputs};
  std::array<void*, 3> pointers{};
  // The copies follow the library's part, in the order of the operands. All of them are queued on one stream, so none
  // is read before it is written.
  std::byte* copy = workspace + library_bytes_;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    check_alignment(operand, callers[i]);
    if (operand.copy == Copy::none) {
      pointers[i] = const_cast<float*>(callers[i]);
      continue;
    }
    // The copy of a result is written as a whole, so it may hold anything before.
    if (!operand.is_result) copy_in(operand, callers[i], copy, context.stream());
    pointers[i] = copy;
    copy += copy_bytes(operand);
  }
  execute(context, pointers, workspace);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].copy == Copy::none || !operands_[i].is_result) continue;
    copy_out(operands_[i], static_cast<const std::byte*>(pointers[i]), const_cast<float*>(callers[i]),
             context.stream());
  }
}

void CudnnConvolution::copy_in(const Operand& operand, const float* from, std::byte* copy, cudaStream_t stream) const {
  Bfloat16* const rounded = reinterpret_cast<Bfloat16*>(copy);
  if (operand.copy == Copy::rounded) {
    round_to_bfloat16({.rows = 1, .columns = operand.extent.columns}, from, rounded, stream);
  } else if (precision_ == Precision::bf16) {
    transpose(operand.extent, from, rounded, stream);
  } else {
    transpose(operand.extent, from, reinterpret_cast<float*>(copy), stream);
  }
}

void CudnnConvolution::copy_out(const Operand& operand, const std::byte* copy, float* to, cudaStream_t stream) const {
  const Bfloat16* const rounded = reinterpret_cast<const Bfloat16*>(copy);
  const MatrixExtent copied = {.rows = operand.extent.columns, .columns = operand.extent.rows};
  if (operand.copy == Copy::rounded) {
    widen_bfloat16(operand.extent.columns, rounded, to, stream);
  } else if (precision_ == Precision::bf16) {
    transpose(copied, rounded, to, stream);
  } else {
    transpose(copied, reinterpret_cast<const float*>(copy), to, stream);
  }
}

void CudnnConvolution::check_alignment(const Operand& operand, const float* array) const {
  if (is_aligned(array, static_cast<std::size_t>(operand.alignment))) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} needs its arrays to begin with a whole sample", operation_));
}

void CudnnConvolution::execute(CudaContext& context, const std::array<void*, 3>& pointers, std::byte* workspace) const {
  const std::array<std::int64_t, 3> identities = {kImages, kKernel, kOutputs};
  const std::array<void*, 1> place = {workspace};
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the arrays of " + operation_);
  pack.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, identities)
      .pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
      .pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, place)
      .finalize();
  check_cudnn(cudnnBackendExecute(context.cudnn(), plan_->get(), pack.get()), operation_);
}

}  // namespace holdfast::compute
