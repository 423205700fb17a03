#include "unit/nn/support/reference_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "nn/graph/config.h"
#include "nn/layers/layer_registry.h"
#include "nn/program/model_program.h"
#include "support/folders.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/placed_array.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using Floats = std::vector<float>;

std::filesystem::path file_of_cases(std::string_view kind) {
  const char* const chosen = std::getenv("HOLDFAST_REFERENCE_CASES");
  const std::filesystem::path folder = chosen != nullptr ? chosen : source_folder() + "/tests/unit/nn/layers/reference";
  return folder / (std::string(kind) + ".json");
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

// What a case has under `name` for its first output, and under "further_`name`s" for the others.
std::vector<Json> each_output(const Json& text, const std::string& name) {
  std::vector<Json> found = {text.at(name)};
  if (const std::string further = "further_" + name + "s"; text.contains(further))
    found.insert(found.end(), text.at(further).begin(), text.at(further).end());
  return found;
}

Model describe_layer(const std::string& kind, const Json& text) {
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
void fill_from_case(const ArenaLayout& layout, const Json& arrays, Floats& arena) {
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    const std::string& name = layout.entries()[entry].name;
    if (!name.starts_with("layer/") || !arrays.contains(name.substr(6))) continue;
    const Json& array = arrays.at(name.substr(6));
    EXPECT_EQ(layout.entries()[entry].shape, shape_in(array)) << name;
    const Floats values = floats_in(array);
    std::copy(values.begin(), values.end(), layout.view(std::span<float>(arena), entry).begin());
  }
}

// What a case expects of one run.
class Expectation {
 public:
  Expectation(const Json& text, const Model& model, double roundings)
      : text_(text), model_(model), roundings_(roundings) {}

  void expect_outputs(const std::vector<Floats>& outputs) const {
    const std::vector<Json> expected = each_output(text_, "output");
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      expect_close(outputs[i], expected[i], "output " + std::to_string(i), 0);
  }

  void expect_gradients(const Floats& gradients) const {
    std::size_t shifts = 0, parameters = 0;
    double cancelled = 0;
    for (const Json& output : each_output(text_, "output_gradient")) {
      for (const float g : floats_in(output)) cancelled = std::max<double>(cancelled, std::abs(g));
    }
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

 private:
  // A sum of n products in f32 is off by about sqrt(n) 2^-24 of its magnitude (Higham and Mary, 2019), and the cases
  // have at most 100 terms in a sum. Functions take some 16 roundings more. Gradients of the cases are right to 1e-8.
  // Terms of a gradient that cancel each other have no magnitude together, so that of the output's gradient is added.
  double tolerance_of(const Json& expected, double cancelled) const {
    return roundings_ * (expected.at("magnitude").get<double>() + cancelled) * (10 + 16) * 0x1p-24 + 2e-8;
  }

  void expect_close(std::span<const float> values, const Json& expected, const std::string& what,
                    double cancelled) const {
    const auto wanted = expected.at("values").get<std::vector<double>>();
    ASSERT_EQ(values.size(), wanted.size()) << what;
    std::size_t worst = 0;
    const auto error = [&](std::size_t i) { return std::abs(static_cast<double>(values[i]) - wanted[i]); };
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (error(i) > error(worst) || std::isnan(error(i))) worst = i;
    }
    EXPECT_LE(error(worst), tolerance_of(expected, cancelled))
        << what << ": element " << worst << " of " << values.size() << " is " << values[worst] << ", not "
        << wanted[worst];
  }

  const Json& text_;
  const Model& model_;
  double roundings_;
};

}  // namespace

Json reference_cases_of(std::string_view kind) {
  const std::filesystem::path path = file_of_cases(kind);
  std::ifstream file(path);
  if (!file) {
    ADD_FAILURE() << "layer " << kind << " has no cases in " << path
                  << "; add it to scripts/tests/reference_cases.py and run this script";
    return Json::array();
  }
  return Json::parse(file).at("cases");
}

ReferenceCase::ReferenceCase(const std::string& kind, const Json& text)
    : text_(text), model_(describe_layer(kind, text)) {}

void ReferenceCase::run(std::unique_ptr<compute::Backend> backend, double roundings) const {
  ModelProgram program(model_, std::move(backend));
  MemorySpace& memory = program.backend().memory();
  Floats initial_parameters(model_.parameters().float_count()), initial_buffers(model_.buffers().float_count());
  model_.initialize(1, initial_parameters, initial_buffers);
  fill_from_case(model_.buffers(), text_.at("buffers"), initial_buffers);
  fill_from_case(model_.parameters(), text_.at("parameters"), initial_parameters);
  const PlacedArray parameters(memory, initial_parameters), buffers(memory, initial_buffers);
  program.read_buffers_from(buffers.span());
  std::vector<PlacedArray> inputs;
  ModelProgram::Inputs addresses;
  for (const Json& input : text_.at("inputs")) {
    inputs.emplace_back(memory, bytes_in(input));
    addresses.push_back(reinterpret_cast<const std::byte*>(inputs.back().data()));
  }
  const std::int64_t samples = shape_in(text_.at("inputs").at(0))[0];
  const Expectation expectation(text_, model_, roundings);
  const std::vector<Json> expected = each_output(text_, "output");
  const auto outputs_of = [&](const ModelProgram::Outputs& addresses_of_outputs) {
    std::vector<Floats> outputs;
    for (std::size_t i = 0; i < addresses_of_outputs.size(); ++i) {
      Floats& output = outputs.emplace_back(static_cast<std::size_t>(shape_in(expected.at(i)).element_count()));
      memory.copy_to_host({reinterpret_cast<const float*>(addresses_of_outputs[i]), output.size()}, output);
    }
    return outputs;
  };

  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(model_.outputs()[i].spec.shape.with_batch(samples), shape_in(expected[i])) << i;
  if (text_.at("mode") == "inference") {
    program.prepare_inference(samples);
    return expectation.expect_outputs(
        outputs_of(program.run_inference(addresses, samples, parameters.span(), buffers.span())));
  }
  program.prepare_training(samples, {});
  expectation.expect_outputs(outputs_of(program.run_training(addresses, samples, parameters.span())));
  std::vector<PlacedArray> output_gradients;
  std::vector<const float*> addresses_of_gradients;
  for (const Json& gradient : each_output(text_, "output_gradient"))
    addresses_of_gradients.push_back(output_gradients.emplace_back(memory, floats_in(gradient)).data());
  // Not zero, so that what is not written shows.
  const PlacedArray gradients(memory, Floats(initial_parameters.size(), 77.0F));
  const PlacedArray contributions(memory, program.contribution_count());
  for (const BackwardPart& part : program.backward_parts(samples, initial_parameters.size() + 1)) {
    program.backward_part(part, samples,
                          {.inputs = addresses,
                           .output_gradients = addresses_of_gradients,
                           .parameters = parameters.span(),
                           .gradients = gradients.span(),
                           .contributions = contributions.span()});
  }
  expectation.expect_gradients(gradients.values());
}

}  // namespace holdfast
