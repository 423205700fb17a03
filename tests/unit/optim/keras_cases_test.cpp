// Twenty steps of the described optimizers against Keras in float64 (scripts/tests/optimizer_cases.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "holdfast/holdfast.h"
#include "support/folders.h"
#include "unit/optim/support/training_run.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Takes options of the case, and fails for one that nobody asked for.
class CaseOptions {
 public:
  explicit CaseOptions(Json options) : options_(std::move(options)) {}
  ~CaseOptions() { EXPECT_TRUE(options_.empty()) << options_; }

  template <class Type>
  void take(const char* name, Type& option) {
    if (!options_.contains(name)) return;
    option = options_[name].get<Type>();
    options_.erase(name);
  }
  template <class Options>
  void take_common(Options& options) {
    float rate = 0;
    take("learning_rate", rate);
    options.learning_rate = rate;
    take("weight_decay", options.weight_decay);
  }

 private:
  Json options_;
};

template <class Kind, class Options>
std::unique_ptr<Optimizer> with_betas(CaseOptions& of, Options options) {
  of.take_common(options);
  of.take("beta_1", options.beta_1);
  of.take("beta_2", options.beta_2);
  if constexpr (requires { options.epsilon; }) of.take("epsilon", options.epsilon);
  return std::make_unique<Kind>(options);
}

std::unique_ptr<Optimizer> optimizer_of(const std::string& kind, CaseOptions of) {
  if (kind == "adamax") return with_betas<Adamax>(of, AdamaxOptions{});
  if (kind == "nadam") return with_betas<Nadam>(of, NadamOptions{});
  if (kind == "lion") return with_betas<Lion>(of, LionOptions{});
  if (kind == "adam") return with_betas<Adam>(of, AdamOptions{});
  if (kind == "sgd") {
    SGDOptions options;
    of.take_common(options);
    of.take("momentum", options.momentum);
    of.take("nesterov", options.nesterov);
    return std::make_unique<SGD>(options);
  }
  if (kind == "adagrad") {
    AdagradOptions options;
    of.take_common(options);
    of.take("initial_accumulator_value", options.initial_accumulator_value);
    of.take("epsilon", options.epsilon);
    return std::make_unique<Adagrad>(options);
  }
  if (kind == "adadelta") {
    AdadeltaOptions options;
    of.take_common(options);
    of.take("rho", options.rho);
    of.take("epsilon", options.epsilon);
    return std::make_unique<Adadelta>(options);
  }
  RMSpropOptions options;
  of.take_common(options);
  of.take("rho", options.rho);
  of.take("momentum", options.momentum);
  of.take("epsilon", options.epsilon);
  of.take("centered", options.centered);
  return std::make_unique<RMSprop>(options);
}

// Each of twenty steps rounds a parameter of at most 2 twice, which is 80 times half an ulp of 1. Changes and slots are
// smaller, and rounded up to ten times.
void expect_near(const std::vector<float>& found, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 100 * kHalfUlp) << what << ", " << i;
}

TEST(KerasCases, GiveTheParametersAndSlotsOfKeras) {
  std::ifstream file(source_folder() + "/tests/unit/optim/reference/optimizers.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 18U);
  for (const Json& one : cases) {
    const auto optimizer = optimizer_of(one["kind"].get<std::string>(), CaseOptions(one["options"]));
    SCOPED_TRACE(optimizer->configuration());
    auto parameters = one["parameters"].get<std::vector<float>>();
    const std::vector<std::string> names = optimizer->slot_names();
    std::vector<std::vector<float>> slots;
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      slots.emplace_back(parameters.size(), optimizer->initial_value_of_slot(slot));
    }
    const std::vector<std::span<float>> spans(slots.begin(), slots.end());

    std::int64_t step = 0;
    for (const Json& gradients : one["gradients"]) {
      optimizer->update(++step, parameters, gradients.get<std::vector<float>>(), spans);
    }

    expect_near(parameters, one["expected"].get<std::vector<double>>(), "parameters");
    EXPECT_EQ(one["slots"].size(), names.size());
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      ASSERT_TRUE(one["slots"].contains(names[slot])) << names[slot];
      expect_near(slots[slot], one["slots"][names[slot]].get<std::vector<double>>(), names[slot]);
    }
  }
}

}  // namespace
}  // namespace holdfast
