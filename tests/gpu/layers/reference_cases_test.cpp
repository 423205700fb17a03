// Layers, losses and metrics on a device, against Keras in float64: the cases of the host's tests.

#include <string>

#include "gpu/support/gpu_test.h"
#include "nn/layers/layer_registry.h"
#include "unit/nn/support/loss_case.h"
#include "unit/nn/support/reference_case.h"

namespace holdfast {
namespace {

// CUDA's exp, log, tanh, erf and pow are off by up to 2 ulp, or 8 for pow (CUDA C++ Programming Guide, "Mathematical
// Functions"), and the host's by half of one to one.
constexpr double kRoundings = 4;

class DeviceReference : public GpuTest {};

TEST_F(DeviceReference, EveryLayerComputesWhatKerasDoes) {
  for (const std::string_view kind : own_layer_kinds()) {
    const nlohmann::json cases = reference_cases_of(kind);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(std::string(kind) + " case " + std::to_string(i) + " " + cases[i].at("config").dump());
      ReferenceCase(std::string(kind), cases[i]).run(backend_under_test(Precision::f32), kRoundings);
    }
  }
}

TEST_F(DeviceReference, LossesGiveTheValuesAndGradientsOfKeras) {
  for (const nlohmann::json& one : loss_cases_in("losses.json")) {
    SCOPED_TRACE(one.at("class").get<std::string>() + " " + one.at("options").dump());
    expect_loss_of_case(one, backend(), kRoundings);
  }
}

TEST_F(DeviceReference, MetricsGiveTheValuesOfKeras) {
  for (const nlohmann::json& one : loss_cases_in("metrics.json")) {
    SCOPED_TRACE(one.dump());
    expect_metric_of_case(one, backend(), kRoundings);
  }
}

}  // namespace
}  // namespace holdfast
