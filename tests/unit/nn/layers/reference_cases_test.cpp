// Every layer computes what Keras does (support/reference_case.h).

#include <gtest/gtest.h>

#include <set>

#include "compute/array_kernels.h"
#include "nn/layers/layer_registry.h"
#include "unit/nn/support/reference_case.h"

namespace holdfast {
namespace {

TEST(ReferenceCases, EveryLayerComputesWhatKerasDoes) {
  for (const std::string_view kind : own_layer_kinds()) {
    const nlohmann::json cases = reference_cases_of(kind);
    EXPECT_GE(cases.size(), 8U) << kind;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(std::string(kind) + " case " + std::to_string(i) + " " + cases[i].at("config").dump());
      ReferenceCase(std::string(kind), cases[i]).run(compute::make_cpu_backend(1));
    }
  }
}

TEST(ReferenceCases, AreThereForEveryFunctionOfElementsOfAFile) {
  std::set<std::string> found;
  for (const nlohmann::json& one : reference_cases_of("Operation"))
    found.insert(one.at("config").at("operation").get<std::string>());

  using enum compute::ElementFunction;
  const std::set<compute::ElementFunction> in_no_file = {gelu_slope, gelu_tanh_slope, silu_slope};
  for (int number = 0; number <= static_cast<int>(select); ++number) {
    const auto function = static_cast<compute::ElementFunction>(number);
    EXPECT_EQ(found.contains(std::string(name_of(function))), !in_no_file.contains(function)) << name_of(function);
  }
}

}  // namespace
}  // namespace holdfast
