// Keras assigns an optimizer's variables by position, so one function gives their order for both directions. The names
// are those of the table in keras_files/keras_optimizer_table.cpp. docs/decisions/exchange.md

#include "keras/keras_optimizer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "bytes/array_prefixes.h"
#include "keras_files/keras_muon.h"

namespace holdfast::format {
namespace {

// What Holdfast calls the moving averages of the parameters.
constexpr std::string_view kAverageSlot = "moving_average";

template <typename Number>
NamedArray optimizer_scalar(std::string_view name, DType dtype, Number value) {
  NamedArray array{.name = fmt::format("{}{}", kOptimizerPrefix, name),
                   .dtype = dtype,
                   .shape = {},
                   .bytes = std::vector<std::byte>(sizeof(value))};
  std::memcpy(array.bytes.data(), &value, sizeof(value));
  return array;
}

// Keras counts in 32 bits with JAX and PyTorch, in 64 with TensorFlow, and accepts both.
NamedArray iteration_array(std::int64_t step) {
  const bool is_short = step <= std::numeric_limits<std::int32_t>::max();
  return is_short ? optimizer_scalar("iteration", DType::i32, static_cast<std::int32_t>(step))
                  : optimizer_scalar("iteration", DType::i64, step);
}

// The product of beta_1 (1 - 0.96^i / 2) over the steps i from 1 to `step` (Dozat, 2016), which Keras's Nadam keeps.
double momentum_product(double beta_1, std::int64_t step) {
  // 0.96^1024 is below the rounding of 1, so all later factors are beta_1.
  constexpr std::int64_t kChanging = 1024;
  const std::int64_t changing = std::clamp(step, std::int64_t{0}, kChanging);
  double product = std::pow(beta_1, static_cast<double>(std::max(step, changing) - changing));
  for (std::int64_t i = 1; i <= changing; ++i) {
    product *= beta_1 * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(i)));
  }
  return product;
}

const Json& optimizer_configuration(const Json& metadata) {
  return member(member(metadata, "configuration"), "optimizer");
}

std::vector<KerasOptimizerPass> passes_of_savepoint(const KerasOptimizerKind& kind, const Json& options) {
  std::vector<KerasOptimizerPass> passes = keras_optimizer_passes(kind, options);
  // Before those of the class, as in build() of Keras's base class.
  if (flag_member(options, "use_ema", false)) {
    passes.insert(passes.begin(), KerasOptimizerPass{{.keras = "average", .holdfast = kAverageSlot}});
  }
  return passes;
}

float initial_slot_value(std::string_view array, const Json& optimizer) {
  const KerasOptimizerKind* kind = keras_optimizer_of_kind(text_member(optimizer, "kind"));
  if (kind == nullptr) return 0;
  for (const KerasOptimizerSlot& slot : kind->slots) {
    if (!slot.initial.empty() && array.starts_with(fmt::format("{}{}/", kOptimizerPrefix, slot.holdfast))) {
      return finite_f32(member(optimizer, slot.initial), 0).value_or(0);
    }
  }
  return 0;
}

}  // namespace

// A compile() begins with an optimizer that has counted nothing, while the steps of the run go on.
std::int64_t step_of_last_compile(const Json& metadata) {
  std::int64_t step = 0;
  const Json& calls = member(metadata, "calls");
  for (const Json& call : calls.is_array() ? calls : Json::array()) {
    if (text_member(call, "kind") != "compile" || !flag_member(call, "finished", false)) continue;
    step = integer_value(member(call, "begun_at_step")).value_or(step);
  }
  return step;
}

KerasOptimizerState keras_optimizer_state(const Json& metadata) {
  const Json& optimizer = optimizer_configuration(metadata);
  const std::int64_t step = integer_value(member(metadata, "step")).value_or(0) - step_of_last_compile(metadata);
  KerasOptimizerState state;
  state.options = optimizer;
  state.step = step;
  state.first.push_back(iteration_array(step));
  // Keras has no variable for a schedule.
  if (!member(optimizer, "learning_rate").is_object()) {
    const auto rate = static_cast<float>(number_member(optimizer, "learning_rate"));
    state.first.push_back(optimizer_scalar("learning_rate", DType::f32, rate));
  }
  const KerasOptimizerKind* kind = keras_optimizer_of_kind(text_member(optimizer, "kind"));
  if (kind == nullptr) return state;
  state.passes = passes_of_savepoint(*kind, optimizer);
  if (!kind->product.empty()) {
    const double product = momentum_product(number_member(optimizer, "beta_1"), step);
    state.last.push_back(optimizer_scalar(kind->product, DType::f32, static_cast<float>(product)));
  }
  return state;
}

std::vector<SlotOfVariable> slots_in_keras_order(const KerasOptimizerState& state,
                                                 std::span<const TrainableVariable> variables) {
  std::vector<SlotOfVariable> order;
  // Keras makes the slots of a pass for one variable after another, before those of the next pass.
  for (const KerasOptimizerPass& pass : state.passes) {
    for (std::size_t variable = 0; variable < variables.size(); ++variable) {
      const TrainableVariable& of = variables[variable];
      for (const KerasOptimizerSlot& slot : pass) {
        if (slot.is_for_adam_alone && !is_for_adam(state.options, of.array, of.shape)) continue;
        order.push_back({variable, slot});
      }
    }
  }
  return order;
}

std::vector<std::byte> initial_slot_bytes(const NamedArray& array, std::span<const NamedArray> all,
                                          const Json& metadata) {
  // A moving average begins as the parameter itself; a zero would pull it down for long.
  const std::string averages = fmt::format("{}{}/", kOptimizerPrefix, kAverageSlot);
  if (array.name.starts_with(averages)) {
    const auto parameter = std::ranges::find(all, kModelPrefix + array.name.substr(averages.size()), &NamedArray::name);
    if (parameter != all.end() && parameter->bytes.size() == array.bytes.size()) return parameter->bytes;
  }
  std::vector<std::byte> bytes(array.bytes.size());
  const float value = initial_slot_value(array.name, optimizer_configuration(metadata));
  // All arrays of a savepoint are f32. For any other type, zeros are a number at least.
  if (array.dtype != DType::f32 || value == 0) return bytes;
  for (std::size_t at = 0; at + sizeof(value) <= bytes.size(); at += sizeof(value)) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  }
  return bytes;
}

}  // namespace holdfast::format
