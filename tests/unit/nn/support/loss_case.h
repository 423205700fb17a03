#pragma once

// Losses and metrics of values against Keras in float64. scripts/tests/loss_cases.py writes the cases and says what is
// in them; add a new class to it, and to the table in loss_case.cpp.

#include <nlohmann/json.hpp>
#include <string>

#include "compute/backend.h"

namespace holdfast {

// "losses.json" or "metrics.json", of the folder that HOLDFAST_REFERENCE_CASES names if it is set.
nlohmann::json loss_cases_in(const std::string& name);

// Fail the test if what the back end computes, or a configuration, is not that of Keras. The rounding of a device's own
// functions may be `roundings` times that of the host's.
void expect_loss_of_case(const nlohmann::json& one, compute::Backend& backend, double roundings = 1);
void expect_metric_of_case(const nlohmann::json& one, compute::Backend& backend, double roundings = 1);

}  // namespace holdfast
