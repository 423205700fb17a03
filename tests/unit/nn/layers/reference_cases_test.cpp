// Every layer computes what Keras does (support/reference_case.h).

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compute/array_kernels.h"
#include "nn/layers/layer_registry.h"
#include "nn/operations/operation_registry.h"
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

TEST(ReferenceCases, AreEightOfEveryOperationOfAFile) {
  std::map<std::string, int> found;
  for (const nlohmann::json& one : reference_cases_of("Operation")) {
    ++found[one.at("config").at("operation").get<std::string>()];
  }
  // A case is a layer alone. These need weights of another one: weight_test.cpp and gather_test.cpp compare them.
  const std::set<std::string_view> with_weights = {"weight", "matmul", "gather"};
  for (const std::string_view name : names_of_operations()) {
    EXPECT_GE(found[std::string(name)], with_weights.contains(name) ? 0 : 8) << name;
  }

  using enum compute::ElementFunction;
  const std::set<compute::ElementFunction> in_no_file = {gelu_slope, gelu_tanh_slope, silu_slope};
  for (int number = 0; number <= static_cast<int>(select); ++number) {
    const auto function = static_cast<compute::ElementFunction>(number);
    const bool is_expected = !in_no_file.contains(function);
    EXPECT_EQ(found[std::string(name_of(function))] >= 8, is_expected) << name_of(function);
  }
}

}  // namespace
}  // namespace holdfast
