#include "nn/operations/weight.h"

#include "holdfast/base/error.h"
#include "nn/operations/operation_registry.h"

namespace holdfast {

std::vector<ValueSpec> WeightOperation::outputs(std::span<const std::optional<ValueSpec>>) const {
  throw Error(ErrorCode::unsupported, "weight_of() stands between the layers of a model, not in the build() of one");
}

// Lowering replaces each weight by its array, so the two functions that compute are never reached.
std::vector<MaybeValue> WeightOperation::gradient(const GradientRequest&) const {
  HOLDFAST_ASSERT(false);
}

void WeightOperation::write_config(ConfigWriter& config) const {
  config.text("weight", weight_);
}

std::unique_ptr<Kernel> WeightOperation::make_kernel(const KernelMaker&) const {
  HOLDFAST_ASSERT(false);
}

std::shared_ptr<const Operation> read_weight(ConfigReader& config) {
  return std::make_shared<const WeightOperation>(config.text("weight"));
}

}  // namespace holdfast
