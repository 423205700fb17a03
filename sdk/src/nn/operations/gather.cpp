// A table is a weight, and ids are integers of samples. The gradient is written for all rows of the table, with zeros
// where no id points, because optimizers read it as a whole. Ids beyond the table are found when a kernel runs, since
// numbers are not known before.

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/operation.h"
#include "nn/operations/operation_registry.h"

namespace holdfast {

namespace {

compute::RowGather row_gather(const KernelMaker& maker, const Shape& table, const ValueSpec& ids) {
  // The kernel names the sample of a wrong id, for which it needs the ids of a sample.
  return {.ids = maker.samples * ids.shape.element_count(),
          .table_rows = table[0],
          .width = table[1],
          .ids_per_sample = ids.shape.element_count()};
}

// The gradient of a table: the sum of what arrives for each row.
class ScatterOperation final : public Operation {
 public:
  explicit ScatterOperation(Shape table) : table_(std::move(table)) {}

  std::string name() const override { return "scatter_sum"; }
  bool takes_integers() const override { return true; }
  bool takes_inputs(std::size_t count) const override { return count == 2; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>>) const override {
    // The rows of all samples of a shard are added up, as for each weight.
    return {{.shape = table_, .dtype = DType::f32, .has_samples = false}};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override {
    throw Error(ErrorCode::unsupported, "there is no gradient of the gradient of a gather()");
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const compute::RowGather gather = row_gather(maker, table_, *maker.inputs[1]);
    return make_function_kernel([&kernels = maker.backend.array_kernels(), gather](const KernelArrays& arrays) {
      kernels.scatter_sum(gather, arrays.input(0), arrays.input(1), arrays.output(0));
    });
  }

 private:
  const Shape table_;
};

// Inputs: a table without samples, and ids.
class GatherOperation final : public Operation {
 public:
  std::string name() const override { return "gather"; }
  bool takes_integers() const override { return true; }
  bool takes_inputs(std::size_t count) const override { return count == 2; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const ValueSpec& table = *inputs[0];
    const ValueSpec& ids = *inputs[1];
    if (table.has_samples || table.shape.rank() != 2 || table.dtype != DType::f32) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("gather() needs a table [rows, width] of f32 that is a weight, not {}", table.shape.to_string()));
    }
    if (!ids.has_samples || ids.dtype == DType::f32 || ids.dtype == DType::bf16) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("gather() needs ids that are integers, not {}; declare the input as one: input(shape, "
                              "{{.dtype = DType::i32}}), and Input(shape, {{.dtype = DType::i32}}) in a Sequential",
                              holdfast::name(ids.dtype)));
    }
    std::vector<std::int64_t> extents = ids.shape.extents();
    // Each id becomes a row of the table, so the width is one more axis.
    extents.push_back(table.shape[1]);
    return {{.shape = Shape(std::move(extents)), .dtype = DType::f32}};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    // Ids are integers, so they have no gradient.
    if (!request.needed[0]) return {std::nullopt, std::nullopt};
    return {apply_one(std::make_shared<const ScatterOperation>(request.inputs[0]->shape()),
                      {*request.output_gradients[0], *request.inputs[1]}),
            std::nullopt};
  }
  void write_config(ConfigWriter&) const override {}
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const compute::RowGather gather = row_gather(maker, maker.input_shape(0), *maker.inputs[1]);
    return make_function_kernel([&kernels = maker.backend.array_kernels(), gather](const KernelArrays& arrays) {
      kernels.gather(gather, arrays.input(0), arrays.input(1), arrays.output(0));
    });
  }
};

}  // namespace

std::shared_ptr<const Operation> make_gather() {
  return std::make_shared<const GatherOperation>();
}

Value gather(const Value& table, const Value& ids) {
  return apply_one(make_gather(), {table, ids});
}

}  // namespace holdfast
