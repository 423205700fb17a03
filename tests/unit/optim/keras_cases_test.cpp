// Twenty steps of the described optimizers against Keras in float64 (scripts/tests/optimizer_cases.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "holdfast/holdfast.h"
#include "support/folders.h"
#include "unit/optim/support/optimizer_of_case.h"
#include "unit/optim/support/training_run.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Each of twenty steps rounds a parameter of at most 2 twice, which is 80 times half an ulp of 1. Changes and slots are
// smaller, and rounded up to ten times. The sums of Ftrl are divided by its rate, so they are larger.
void expect_near(const std::vector<float>& found, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 100 * kHalfUlp * std::max(1.0, std::abs(expected[i]))) << what << ", " << i;
}

TEST(KerasCases, GiveTheParametersAndSlotsOfKeras) {
  std::ifstream file(source_folder() + "/tests/unit/optim/reference/optimizers.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 35U);
  for (const Json& one : cases) {
    const auto optimizer = optimizer_of_case(one);
    SCOPED_TRACE(optimizer->configuration());
    auto parameters = one["parameters"].get<std::vector<float>>();
    const std::vector<std::string> names = optimizer->slot_names();
    std::vector<std::vector<float>> slots;
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      slots.emplace_back(parameters.size(), optimizer->initial_value_of_slot(slot));
    }
    const std::vector<std::span<float>> spans(slots.begin(), slots.end());

    const Shape shape(one.value("shape", std::vector<std::int64_t>{6}));
    std::int64_t step = 0;
    for (const Json& gradients : one["gradients"]) {
      const auto of_step = gradients.get<std::vector<float>>();
      if (one.contains("shape")) {
        optimizer->update_array({.name = "w", .shape = &shape}, ++step, parameters, of_step, spans);
      } else {
        optimizer->update(++step, parameters, of_step, spans);
      }
    }

    expect_near(parameters, one["expected"].get<std::vector<double>>(), "parameters");
    // Keras has no velocity for the matrices of Muon.
    const std::size_t absent = one["kind"] == "muon" && shape.rank() == 2 ? 1 : 0;
    EXPECT_EQ(one["slots"].size(), names.size() - absent);
    for (std::size_t slot = 0; slot < names.size() - absent; ++slot) {
      ASSERT_TRUE(one["slots"].contains(names[slot])) << names[slot];
      expect_near(slots[slot], one["slots"][names[slot]].get<std::vector<double>>(), names[slot]);
    }
  }
}

}  // namespace
}  // namespace holdfast
