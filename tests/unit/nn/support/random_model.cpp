#include "unit/nn/support/random_model.h"

#include <bit>
#include <limits>
#include <optional>

#include "nn/model/description.h"
#include "nn/plan/model_plan.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast::random_models {

namespace {

// What every model of a higher number may hold besides: kernels with workspaces, and arrays of other shapes.
constexpr std::uint64_t kFirstWideModel = 100;
constexpr std::int64_t kIds = 5;

// The operations that wide models have and others have not. All take and give six numbers a sample.
class WideOperations {
 public:
  static constexpr std::uint64_t kCount = 8;

  // A list of the inputs that the operations read.
  const Value& ids() const { return ids_; }
  Value apply(std::uint64_t operation, const Value& x, const Value& y) const {
    switch (operation) {
      case 0:
        return reshape(MaxPooling1D{2}(Conv1D{2, 3, {.padding = Padding::same}}(reshape(x, {6, 1}))), {6});
      case 1:
        return reshape(Conv2D{1, 2, {.padding = Padding::same, .activation = Activation::relu}}(reshape(x, {2, 3, 1})),
                       {6});
      case 2:
        return reshape(AveragePooling2D{2, {.strides = 1, .padding = Padding::same}}(reshape(x, {2, 3, 1})), {6});
      case 3:
        return reshape(Conv1DTranspose{1, 2, {.strides = 2}}(reshape(slice(x, 0, 0, 3), {3, 1})), {6});
      case 4:
        return x + reshape(Embedding{kIds, 1}(ids_), {6});
      case 5:
        return reshape(Dot({1, 0})(reshape(x, {3, 2}), reshape(slice(y, 0, 1, 5), {2, 2})), {6});
      case 6:
        return x - largest(y, {0}, ReducedAxes::keep);
      default:
        return block_.call({x}, "block").at(0);
    }
  }

 private:
  static Model nested() {
    const Value inner = input({6});
    return {inner, tanh(Dense{6}(inner)) * inner};
  }

  Value ids_ = input({6}, {.dtype = DType::i32, .name = "ids"});
  Model block_ = nested();
};

// Six floats, or six ids as words of floats that nobody computes with.
std::vector<float> random_array(const ValueSpec& spec, std::int64_t samples, std::uint64_t seed) {
  std::vector<float> words = reference::random_values(static_cast<std::size_t>(samples) * 6, seed);
  if (spec.dtype == DType::f32) return words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = std::bit_cast<float>(static_cast<std::int32_t>((i * 7 + seed) % static_cast<std::uint64_t>(kIds)));
  }
  return words;
}

}  // namespace

Model random_model(std::uint64_t number, Segments segments, Products products) {
  Random random(number, Purpose::user, 0, 0);
  Random segment_lengths(number, Purpose::user, 1, 0);
  std::optional<RecomputedSegment> segment;
  std::uint64_t segment_ends = 0;
  const std::vector<Dense> shared = {Dense{6}, Dense{6, {.activation = Activation::relu}}};
  std::vector<Value> inputs, values;
  const std::uint64_t input_count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < input_count; ++i) inputs.push_back(input({6}));
  values = inputs;
  const WideOperations wide;
  const bool has_products = products == Products::of_a_library;
  const bool is_wide = has_products && number >= kFirstWideModel;
  if (is_wide) inputs.push_back(wide.ids());
  const auto any = [&] { return values[random.below(values.size())]; };
  const std::uint64_t operations = 5 + random.below(26);
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (segments == Segments::recomputed && i == segment_ends) {
      segment.reset();
      if (segment_lengths.below(4) != 0) segment.emplace();
      segment_ends += 1 + segment_lengths.below(8);
    }
    const Value x = any();
    const std::uint64_t kind = random.below(is_wide ? 20 + WideOperations::kCount : 20);
    if (kind >= 20) {
      values.push_back(wide.apply(kind - 20, x, any()));
      continue;
    }
    switch (kind) {
      case 0:
        values.push_back(has_products ? shared[random.below(2)](x) : sigmoid(x + any()));
        break;
      case 1:
        values.push_back(has_products ? Dense{6}(x) : Softmax{}(x));
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
  const auto backend = compute::make_cpu_backend(options.threads);
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
    const bool is_input = i < description.inputs.size();
    external.push_back(random_array(is_input ? description.inputs[i].spec : ValueSpec(), samples, 30 + i));
  }
  ModelPlan::Bases bases = {bytes(arena), bytes(parameters), bytes(buffers), bytes(result.gradients),
                            bytes(result.contributions)};
  for (auto& array : external) bases.push_back(bytes(array));

  plan.forward(bases, [](const std::string&) {});
  for (std::size_t output = 0; output < description.outputs.size(); ++output) {
    const auto* const values = reinterpret_cast<const float*>(plan.output(output, bases));
    result.outputs.emplace_back(values, values + samples * 6);
  }
  for (const BackwardPart& part : plan.backward_parts(1)) plan.backward(part, bases, [](const std::string&) {});
  return result;
}

}  // namespace holdfast::random_models
