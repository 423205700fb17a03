// Every layer computes what Keras does, output and gradients, in random small cases. scripts/tests/reference_cases.py
// writes the cases and says what is in them; run it with the name of a layer that is added. It can write more cases
// elsewhere, and HOLDFAST_REFERENCE_CASES names their folder.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "compute/array_kernels.h"
#include "holdfast/nn/model.h"
#include "nn/graph/config.h"
#include "nn/layers/layer_registry.h"
#include "nn/program/model_program.h"
#include "support/folders.h"
#include "unit/nn/support/function_layer.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using Floats = std::vector<float>;

std::filesystem::path file_of_cases(std::string_view kind) {
  const char* const chosen = std::getenv("HOLDFAST_REFERENCE_CASES");
  const std::filesystem::path folder = chosen != nullptr ? chosen : source_folder() + "/tests/unit/nn/layers/reference";
  return folder / (std::string(kind) + ".json");
}

Json cases_of(std::string_view kind) {
  const std::filesystem::path path = file_of_cases(kind);
  std::ifstream file(path);
  if (!file) {
    ADD_FAILURE() << "layer " << kind << " has no cases in " << path
                  << "; add it to scripts/tests/reference_cases.py and run this script";
    return Json::array();
  }
  return Json::parse(file).at("cases");
}

// A sum of n products in f32 is off by about sqrt(n) 2^-24 of its magnitude (Higham and Mary, 2019), and the cases have
// at most 100 terms in a sum. Functions take some 16 roundings more. Gradients of the cases are right to 1e-8.
// Terms of a gradient that cancel each other have no magnitude together, so that of the output's gradient is added.
double tolerance_of(const Json& expected, double cancelled) {
  return (expected.at("magnitude").get<double>() + cancelled) * (10 + 16) * 0x1p-24 + 2e-8;
}

void expect_close(std::span<const float> values, const Json& expected, const std::string& what, double cancelled = 0) {
  const auto wanted = expected.at("values").get<std::vector<double>>();
  ASSERT_EQ(values.size(), wanted.size()) << what;
  std::size_t worst = 0;
  const auto error = [&](std::size_t i) { return std::abs(static_cast<double>(values[i]) - wanted[i]); };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (error(i) > error(worst) || std::isnan(error(i))) worst = i;
  }
  EXPECT_LE(error(worst), tolerance_of(expected, cancelled)) << what << ": element " << worst << " of " << values.size()
                                                             << " is " << values[worst] << ", not " << wanted[worst];
}

Shape shape_in(const Json& array) {
  return Shape(array.at("shape").get<std::vector<std::int64_t>>());
}

Floats floats_in(const Json& array) {
  return array.at("values").get<Floats>();
}

bool is_of_integers(const Json& array) {
  return array.contains("dtype");
}

std::vector<std::byte> bytes_in(const Json& array) {
  const auto copied = [](const auto& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    return std::vector(bytes.begin(), bytes.end());
  };
  if (is_of_integers(array)) return copied(array.at("values").get<std::vector<std::int32_t>>());
  return copied(floats_in(array));
}

// One layer, each of whose inputs is shifted by a parameter: the gradient of the shift is that of the input. Integers
// are not shifted.
class ReferenceCase {
 public:
  ReferenceCase(const std::string& kind, const Json& text) : text_(text), model_(describe_layer(kind, text)) {}

  void run() {
    ModelProgram program(model_, 1);
    Floats parameters(model_.parameters().float_count()), buffers(model_.buffers().float_count());
    model_.initialize(1, parameters, buffers);
    fill_from_case(model_.buffers(), text_.at("buffers"), buffers);
    fill_from_case(model_.parameters(), text_.at("parameters"), parameters);
    program.read_buffers_from(buffers);
    std::vector<std::vector<std::byte>> inputs;
    ModelProgram::Inputs addresses;
    for (const Json& input : text_.at("inputs")) inputs.push_back(bytes_in(input));
    for (const std::vector<std::byte>& input : inputs) addresses.push_back(input.data());
    const std::int64_t samples = shape_in(text_.at("inputs").at(0))[0];

    EXPECT_EQ(model_.output_shape().with_batch(samples), shape_in(text_.at("output")));
    if (text_.at("mode") == "inference") {
      program.prepare_inference(samples);
      return expect_output(program.run_inference(addresses, samples, parameters, buffers));
    }
    program.prepare_training(samples, {});
    expect_output(program.run_training(addresses, samples, parameters));
    const Floats output_gradient = floats_in(text_.at("output_gradient"));
    // Not zero, so that what is not written shows.
    Floats gradients(parameters.size(), 77.0F), contributions(program.contribution_count());
    for (const BackwardPart& part : program.backward_parts(samples, gradients.size() + 1)) {
      program.backward_part(part, samples,
                            {.inputs = addresses,
                             .output_gradients = {output_gradient.data()},
                             .parameters = parameters,
                             .gradients = gradients,
                             .contributions = contributions});
    }
    expect_gradients(gradients);
  }

 private:
  static Model describe_layer(const std::string& kind, const Json& text) {
    std::vector<Value> inputs, shifted;
    for (const Json& array : text.at("inputs")) {
      const bool is_integer = is_of_integers(array);
      inputs.push_back(input(shape_in(array).without_batch(), {.dtype = is_integer ? DType::i32 : DType::f32}));
      shifted.push_back(is_integer ? inputs.back() : FunctionLayer([](const Value& x) { return x; })(inputs.back()));
    }
    JsonConfigReader reader(text.at("config"), kind);
    return {inputs, call_layer(make_layer(kind, "layer", reader), shifted)};
  }

  // The entries that the case has. Others begin as in any model: the shifts with 0, given statistics as they are.
  static void fill_from_case(const ArenaLayout& layout, const Json& arrays, Floats& arena) {
    for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
      const std::string& name = layout.entries()[entry].name;
      if (!name.starts_with("layer/") || !arrays.contains(name.substr(6))) continue;
      const Json& array = arrays.at(name.substr(6));
      EXPECT_EQ(layout.entries()[entry].shape, shape_in(array)) << name;
      const Floats values = floats_in(array);
      std::copy(values.begin(), values.end(), layout.view(std::span<float>(arena), entry).begin());
    }
  }

  void expect_output(const ModelProgram::Outputs& outputs) const {
    const auto* const first = reinterpret_cast<const float*>(outputs.at(0));
    const auto count = static_cast<std::size_t>(shape_in(text_.at("output")).element_count());
    expect_close({first, count}, text_.at("output"), "output");
  }

  void expect_gradients(const Floats& gradients) const {
    std::size_t shifts = 0, parameters = 0;
    double cancelled = 0;
    for (const float g : floats_in(text_.at("output_gradient"))) cancelled = std::max<double>(cancelled, std::abs(g));
    for (std::size_t entry = 0; entry < model_.parameters().entries().size(); ++entry) {
      const std::string& name = model_.parameters().entries()[entry].name;
      const std::span<const float> found = model_.parameters().view(std::span<const float>(gradients), entry);
      if (name.starts_with("layer/")) {
        expect_close(found, text_.at("parameter_gradients").at(name.substr(6)), "gradient of " + name, cancelled);
        ++parameters;
      } else {
        expect_close(found, text_.at("input_gradients").at(shifts++), "gradient of an input", cancelled);
      }
    }
    EXPECT_EQ(shifts, text_.at("input_gradients").size());
    EXPECT_EQ(parameters, text_.at("parameter_gradients").size());
  }

  const Json& text_;
  const Model model_;
};

TEST(ReferenceCases, EveryLayerComputesWhatKerasDoes) {
  for (const std::string_view kind : own_layer_kinds()) {
    const Json cases = cases_of(kind);
    EXPECT_GE(cases.size(), 8U) << kind;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(std::string(kind) + " case " + std::to_string(i) + " " + cases[i].at("config").dump());
      ReferenceCase(std::string(kind), cases[i]).run();
    }
  }
}

TEST(ReferenceCases, AreThereForEveryFunctionOfElementsOfAFile) {
  std::set<std::string> found;
  for (const Json& one : cases_of("Operation")) found.insert(one.at("config").at("operation").get<std::string>());

  using enum compute::ElementFunction;
  const std::set<compute::ElementFunction> in_no_file = {gelu_slope, gelu_tanh_slope, silu_slope};
  for (int number = 0; number <= static_cast<int>(select); ++number) {
    const auto function = static_cast<compute::ElementFunction>(number);
    EXPECT_EQ(found.contains(std::string(name_of(function))), !in_no_file.contains(function)) << name_of(function);
  }
}

}  // namespace
}  // namespace holdfast
