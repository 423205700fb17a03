#include "nn/operations/row_operation.h"

#include <algorithm>

#include "nn/graph/operation.h"

namespace holdfast {

namespace {

using compute::RowInstruction;

class RowProgramKernel final : public Kernel {
 public:
  RowProgramKernel(const RowOperationOptions& options, std::int64_t samples)
      : operation_(compute::make_row_operation(options.program, samples * options.rows_of_sample)),
        inputs_(options.program.inputs.size()),
        outputs_(options.outputs.size()) {}

  void run(const KernelArrays& arrays) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = arrays.input(i);
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = arrays.output(i);
    operation_->run(inputs_, outputs_);
  }
  std::size_t own_bytes() const override { return operation_->own_bytes(); }

 private:
  const std::unique_ptr<compute::RowOperation> operation_;
  // They belong to the pass that runs, which must not allocate.
  std::vector<const float*> inputs_;
  std::vector<float*> outputs_;
};

class RowProgramOperation final : public Operation {
 public:
  explicit RowProgramOperation(RowOperationOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "rows"; }
  // A column sum goes over the rows of all samples, so its operation needs them all at once.
  bool is_sample_wise() const override {
    const auto is_over_samples = [](const RowInstruction& one) { return one.kind == RowInstruction::Kind::column_sum; };
    const auto& instructions = options_.program.instructions;
    return std::none_of(instructions.begin(), instructions.end(), is_over_samples);
  }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>>) const override { return options_.outputs; }
  std::optional<std::size_t> overwritable_input() const override { return options_.overwritable_input; }
  // Plans make it after differentiation, of operations that are gradients themselves.
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return std::make_unique<RowProgramKernel>(options_, maker.samples);
  }

 private:
  const RowOperationOptions options_;
};

}  // namespace

std::shared_ptr<const Operation> make_row_operation(RowOperationOptions options) {
  return std::make_shared<const RowProgramOperation>(std::move(options));
}

}  // namespace holdfast
