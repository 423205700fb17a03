#include "unit/nn/support/random_model.h"

#include <limits>
#include <optional>

#include "nn/model/description.h"
#include "nn/plan/model_plan.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast::random_models {

Model random_model(std::uint64_t number, Segments segments) {
  Random random(number, Purpose::user, 0, 0);
  Random segment_lengths(number, Purpose::user, 1, 0);
  std::optional<RecomputedSegment> segment;
  std::uint64_t segment_ends = 0;
  const std::vector<Dense> shared = {Dense{6}, Dense{6, {.activation = Activation::relu}}};
  std::vector<Value> inputs, values;
  const std::uint64_t input_count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < input_count; ++i) inputs.push_back(input({6}));
  values = inputs;
  const auto any = [&] { return values[random.below(values.size())]; };
  const std::uint64_t operations = 5 + random.below(26);
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (segments == Segments::recomputed && i == segment_ends) {
      segment.reset();
      if (segment_lengths.below(4) != 0) segment.emplace();
      segment_ends += 1 + segment_lengths.below(8);
    }
    const Value x = any();
    switch (random.below(20)) {
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
        values.push_back(BatchNormalization{{.has_scale = i % 3 != 0, .has_center = i % 2 != 0}}(x));
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
      case 13:
        values.push_back(silu(x) - softplus(any()));
        break;
      case 14:
        values.push_back(where(less(x, any()), x * 2.0F, 1.0F - square(x * 0.25F)));
        break;
      case 15:
        values.push_back(tanh(gelu_tanh(x * 0.5F + 1.0F) * (x + sum(any(), {0}, ReducedAxes::keep))));
        break;
      case 16:
        values.push_back(absolute(x) / (square(any()) + 1.0F));
        break;
      case 17:
        values.push_back(minimum(-x, any() * any()));
        break;
      case 18:
        values.push_back(exponential(minimum(tanh(x), any() * 0.5F - 1.0F)));
        break;
      default:
        values.push_back(gelu(x));
    }
  }
  // Inputs that no output needs are allowed, so the outputs may be any two.
  return Model(inputs, {values.back(), any()});
}

static std::byte* bytes(std::vector<float>& floats) {
  return reinterpret_cast<std::byte*>(floats.data());
}

Result train(const Model& model, std::int64_t samples, const TrainingOptions& options) {
  const ModelDescription& description = *model.description();
  const auto backend = compute::make_cpu_backend(1);
  backend->set_draws({.seed = 1, .step = 2, .first_sample = 3});
  ModelPlan plan(description.training,
                 {.samples = samples,
                  .inputs = description.inputs.size(),
                  .parameters = description.parameters,
                  .buffers = description.buffers,
                  .shares_memory = options.shares_memory,
                  .fuses_elements = options.fuses_elements,
                  .least_row = options.least_row,
                  .tile_bytes = options.tile_bytes},
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

}  // namespace holdfast::random_models
