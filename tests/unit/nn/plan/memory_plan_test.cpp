#include "nn/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "holdfast/holdfast.h"
#include "nn/model/description.h"
#include "nn/plan/model_plan.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

// A model of 5 to 30 random operations on values of shapes [6], [2, 3] and [3, 2], with shared layers, one to three
// inputs and two outputs.
Model random_model(std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  const std::vector<Dense> shared = {Dense{6}, Dense{6, {.activation = Activation::relu}}};
  std::vector<Value> inputs, values;
  const std::uint64_t input_count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < input_count; ++i) inputs.push_back(input({6}));
  values = inputs;
  const auto any = [&] { return values[random.below(values.size())]; };
  const std::uint64_t operations = 5 + random.below(26);
  for (std::uint64_t i = 0; i < operations; ++i) {
    const Value x = any();
    switch (random.below(14)) {
      case 0:
        values.push_back(shared[random.below(2)](x));
        break;
      case 1:
        values.push_back(Dense{6}(x));
        break;
      case 2:
        values.push_back(x + any());
        break;
      case 3:
        values.push_back(x * any());
        break;
      case 4:
        values.push_back(relu(x));
        break;
      case 5:
        values.push_back(tanh(x));
        break;
      case 6:
        values.push_back(x - mean(x, {0}, ReducedAxes::keep));
        break;
      case 7:
        values.push_back(Dropout{0.3F}(x));
        break;
      case 8:
        values.push_back(BatchNormalization{}(x));
        break;
      case 9:
        values.push_back(reshape(permute(reshape(x, {2, 3}), {1, 0}), {6}));
        break;
      case 10:
        values.push_back(concatenate({slice(x, 0, 2, 6), slice(any(), 0, 0, 2)}));
        break;
      case 11:
        values.push_back(LayerNormalization{}(x));
        break;
      case 12:
        values.push_back(maximum(x, any()) * 0.5F);
        break;
      default:
        values.push_back(gelu(x));
    }
  }
  // Inputs that no output needs are allowed, so the outputs may be any two.
  return Model(inputs, {values.back(), any()});
}

struct Result {
  std::vector<std::vector<float>> outputs;
  std::vector<float> gradients;
  std::vector<float> contributions;

  // As bits, since a NaN is not equal to itself.
  friend bool operator==(const Result& a, const Result& b) {
    const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
      return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    };
    bool equal = a.outputs.size() == b.outputs.size();
    for (std::size_t i = 0; equal && i < a.outputs.size(); ++i) equal = same(a.outputs[i], b.outputs[i]);
    return equal && same(a.gradients, b.gradients) && same(a.contributions, b.contributions);
  }
};

std::byte* bytes(std::vector<float>& floats) {
  return reinterpret_cast<std::byte*>(floats.data());
}

// One training pass in memory that holds NaN at first.
Result train(const Model& model, std::int64_t samples, bool shares_memory) {
  const ModelDescription& description = *model.description();
  const auto backend = compute::make_cpu_backend(1);
  backend->set_draws({.seed = 1, .step = 2, .first_sample = 3});
  ModelPlan plan(description.training,
                 {.samples = samples,
                  .inputs = description.inputs.size(),
                  .parameters = description.parameters,
                  .buffers = description.buffers,
                  .shares_memory = shares_memory},
                 *backend, true);
  std::vector<float> parameters(description.parameters.float_count()), buffers(description.buffers.float_count());
  model.initialize(5, parameters, buffers);
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> arena(plan.arena_bytes() / sizeof(float) + 1, kNaN);
  Result result = {.outputs = {},
                   .gradients = std::vector<float>(parameters.size(), 0.0F),
                   .contributions = std::vector<float>(description.contribution_count(), kNaN)};
  std::vector<std::vector<float>> external;
  const std::size_t arrays = description.inputs.size() + description.outputs.size();
  for (std::size_t i = 0; i < arrays; ++i) {
    external.push_back(reference::random_values(static_cast<std::size_t>(samples) * 6, 30 + i));
  }
  ModelPlan::Bases bases = {bytes(arena), bytes(parameters), bytes(buffers), bytes(result.gradients),
                            bytes(result.contributions)};
  for (auto& array : external) bases.push_back(bytes(array));

  plan.forward(bases, [] {});
  for (std::size_t output = 0; output < description.outputs.size(); ++output) {
    const auto* const values = reinterpret_cast<const float*>(plan.output(output, bases));
    result.outputs.emplace_back(values, values + samples * 6);
  }
  for (const BackwardPart& part : plan.backward_parts(1)) plan.backward(part, bases, [] {});
  return result;
}

TEST(MemoryPlan, ArraysThatShareMemoryHaveTheBitsOfArraysThatDoNot) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model model = random_model(number);
    const auto samples = static_cast<std::int64_t>(1 + number % 5);

    const Result apart = train(model, samples, false);

    EXPECT_EQ(train(model, samples, true), apart) << "model " << number;
    for (const float gradient : apart.gradients) ASSERT_FALSE(std::isnan(gradient)) << "model " << number;
    for (const float sum : apart.contributions) ASSERT_FALSE(std::isnan(sum)) << "model " << number;
  }
}

TEST(MemoryPlan, GraphTextsOfRandomModelsDescribeModelsWithTheSameBits) {
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Model model = random_model(number);
    const Model read = Model::from_graph(model.graph());

    EXPECT_EQ(read.graph(), model.graph());
    EXPECT_EQ(train(read, 3, true), train(model, 3, true)) << "model " << number;
  }
}

std::size_t arena_bytes(const Model& model, std::int64_t samples, bool is_training) {
  const ModelDescription& description = *model.description();
  return plan_memory(is_training ? description.training : description.inference, {.samples = samples,
                                                                                  .inputs = description.inputs.size(),
                                                                                  .parameters = description.parameters,
                                                                                  .buffers = description.buffers})
      .arena_bytes;
}

TEST(MemoryPlan, InferenceOfADeepChainTakesTwoArrays) {
  const Value x = input({64});
  Value y = x;
  for (int layer = 0; layer < 20; ++layer) y = Dense{64, {.activation = Activation::relu}}(y);

  EXPECT_EQ(arena_bytes(Model(x, y), 8, false), 2U * 8 * 64 * sizeof(float));
}

TEST(MemoryPlan, TrainingKeepsEachOutputOnceAndTwoGradients) {
  const Value x = input({64});
  Value y = x;
  for (int layer = 0; layer < 20; ++layer) y = Dense{64, {.activation = Activation::relu}}(y);

  // Gradients take the place of outputs that are needed no longer, so the peak is near the end of the forward pass.
  EXPECT_LE(arena_bytes(Model(x, y), 8, true), 22U * 8 * 64 * sizeof(float));
  EXPECT_GE(arena_bytes(Model(x, y), 8, true), 20U * 8 * 64 * sizeof(float));
}

}  // namespace
}  // namespace holdfast
