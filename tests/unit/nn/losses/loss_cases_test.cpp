// Losses and metrics of values against Keras (support/loss_case.h).

#include "unit/nn/support/loss_case.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/folders.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

TEST(LossCases, GiveTheValuesAndGradientsOfKeras) {
  const auto backend = compute::make_cpu_backend(1);
  for (const Json& one : loss_cases_in("losses.json")) {
    SCOPED_TRACE(one.at("class").get<std::string>() + " " + one.at("options").dump());
    expect_loss_of_case(one, *backend);
  }
}

TEST(MetricCases, GiveTheValuesOfKeras) {
  const auto backend = compute::make_cpu_backend(1);
  for (const Json& one : loss_cases_in("metrics.json")) {
    SCOPED_TRACE(one.dump());
    expect_metric_of_case(one, *backend);
  }
}

// Names of the classes that derive from a base, in the public headers.
std::set<std::string> classes_from(const std::string& base) {
  const std::regex pattern("class (\\w+) (final )?: public " + base + " ");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/sdk/include/holdfast/nn")) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string all = text.str();
    for (std::sregex_iterator found(all.begin(), all.end(), pattern), end; found != end; ++found) {
      names.insert((*found)[1]);
    }
  }
  return names;
}

std::map<std::string, int> counts_of_cases(const std::string& file) {
  std::map<std::string, int> counts;
  for (const Json& one : loss_cases_in(file)) ++counts[one.at("class").get<std::string>()];
  return counts;
}

TEST(LossCases, ExistForEveryLossOfValues) {
  std::set<std::string> names = classes_from("BuiltInLoss");
  names.insert("CTC");
  auto counts = counts_of_cases("losses.json");

  EXPECT_GE(names.size(), 17U);
  for (const std::string& name : names) EXPECT_EQ(counts[name], 8) << "add " << name << " to loss_cases.py";
}

TEST(MetricCases, ExistForEveryMetricOfValues) {
  std::set<std::string> names = classes_from("BuiltInMetric");
  names.merge(classes_from("ConfusionMetric"));
  names.merge(classes_from("OperatingPointMetric"));
  names.merge(classes_from("IoUMetric"));
  for (const char* base : {"ConfusionMetric", "OperatingPointMetric", "IoUMetric"}) names.erase(base);
  auto counts = counts_of_cases("metrics.json");

  EXPECT_GE(names.size(), 39U);
  for (const std::string& name : names) EXPECT_EQ(counts[name], 8) << "add " << name << " to loss_cases.py";
}

}  // namespace
}  // namespace holdfast
