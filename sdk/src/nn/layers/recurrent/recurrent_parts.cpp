// The products of all inputs of a sequence are one product of matrices, which needs no step to wait for another. What
// is left is one operation over all steps. docs/decisions/layers.md

#include "nn/layers/recurrent/recurrent_parts.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/layers/noise/noise.h"
#include "nn/layers/recurrent/recurrent_steps.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"
#include "nn/operations/sequences/recurrence.h"

namespace holdfast {

namespace {

std::int64_t gate_count(RecurrentKind kind) {
  return kind == RecurrentKind::simple ? 1 : kind == RecurrentKind::lstm ? 4 : 3;
}

compute::CellKind cell_kind(RecurrentKind kind) {
  switch (kind) {
    case RecurrentKind::simple:
      return compute::CellKind::simple;
    case RecurrentKind::lstm:
      return compute::CellKind::lstm;
    case RecurrentKind::gru:
      return compute::CellKind::gru;
  }
  HOLDFAST_ASSERT(false);
}

// Jozefowicz et al., 2015: a cell that forgets at first learns slowly. The gates are i, f, c and o, and the second is
// the one that forgets.
Initializer bias_initializer(const RecurrentSettings& settings) {
  const bool has_forget_bias = settings.kind == RecurrentKind::lstm && settings.options.unit_forget_bias;
  if (!has_forget_bias) return settings.options.bias_initializer;
  std::vector<float> values(static_cast<std::size_t>(4 * settings.units));
  std::fill_n(values.begin() + settings.units, settings.units, 1.0F);
  return Initializer::values(std::move(values));
}

struct Weights {
  Value kernel;
  Value recurrent_kernel;
  MaybeValue bias;  // of the products of the inputs
  MaybeValue recurrent_bias;
};

Weights weights_of(LayerBuilder& builder, const RecurrentSettings& settings, std::int64_t width,
                   const std::string& prefix) {
  const RecurrentOptions& options = settings.options;
  const std::int64_t gates = gate_count(settings.kind) * settings.units;
  const Fans fans = {.in = width, .out = gates};
  const Fans recurrent_fans = {.in = settings.units, .out = gates};
  // In the order of files: parameters are listed in the order in which they are made.
  Weights weights = {
      .kernel = limited(builder, builder.parameter(prefix + "kernel", {width, gates}, options.kernel_initializer, fans),
                        options.kernel_regularizer, options.kernel_constraint),
      .recurrent_kernel = limited(builder,
                                  builder.parameter(prefix + "recurrent_kernel", {settings.units, gates},
                                                    options.recurrent_initializer, recurrent_fans),
                                  options.recurrent_regularizer, options.recurrent_constraint),
      .bias = std::nullopt,
      .recurrent_bias = std::nullopt};
  if (!options.use_bias) return weights;
  const bool has_two = settings.kind == RecurrentKind::gru && options.reset_after;
  const Shape shape = has_two ? Shape{2, gates} : Shape{gates};
  const Value bias = limited(builder, builder.parameter(prefix + "bias", shape, bias_initializer(settings), fans),
                             options.bias_regularizer, options.bias_constraint);
  if (!has_two) {
    weights.bias = bias;
    return weights;
  }
  // The reset gate multiplies the second row with the state's product, so it cannot be added to the first one.
  weights.bias = reshape(slice(bias, 0, 0, 1), std::vector<std::int64_t>{gates});
  weights.recurrent_bias = reshape(slice(bias, 0, 1, 2), std::vector<std::int64_t>{gates});
  return weights;
}

// The products of all steps. The same elements of the input are dropped in each step (Gal and Ghahramani, 2016).
Value input_products(LayerBuilder& builder, const RecurrentSettings& settings, const Weights& weights, const Value& x,
                     const RecurrentDirection& direction) {
  const float rate = settings.options.dropout;
  if (!builder.is_training() || rate == 0) return dense(x, weights.kernel, weights.bias);
  // A mask of one step, [1, width], which the product broadcasts over all steps.
  const Value first = slice(x, 0, 0, 1);
  const std::int64_t gates = gate_count(settings.kind);
  // Keras draws for each gate as soon as it does so for states.
  if (settings.options.recurrent_dropout == 0 || gates == 1) {
    return dense(x * dropout_mask(builder, first, rate, direction.draw_number), weights.kernel, weights.bias);
  }
  std::vector<Value> products;
  for (std::int64_t gate = 0; gate < gates; ++gate) {
    const std::uint64_t number =
        gate == 0 ? direction.draw_number : direction.further_draws + static_cast<std::uint64_t>(gate) - 1;
    // Each gate sees the input through a mask of its own, so it has a product of its own.
    const std::int64_t begin = gate * settings.units;
    const std::int64_t end = begin + settings.units;
    products.push_back(dense(x * dropout_mask(builder, first, rate, number), slice(weights.kernel, 1, begin, end),
                             weights.bias ? MaybeValue(slice(*weights.bias, 0, begin, end)) : std::nullopt));
  }
  // Gate by gate, which is the order of the columns of one product.
  return concatenate(products, -1);
}

// For each gate, what is kept of the states of all steps. Empty where nothing is dropped.
std::vector<Value> state_masks(LayerBuilder& builder, const RecurrentSettings& settings, const Value& products,
                               const RecurrentDirection& direction) {
  const float rate = settings.options.recurrent_dropout;
  std::vector<Value> masks;
  if (!builder.is_training() || rate == 0) return masks;
  // Its shape alone is used.
  const Value like = reshape(slice(slice(products, 0, 0, 1), 1, 0, settings.units), Shape{settings.units});
  // After the draws for the inputs of three gates, also where these are not used. So an option of the inputs changes no
  // bit of the states.
  for (std::int64_t gate = 0; gate < gate_count(settings.kind); ++gate) {
    masks.push_back(dropout_mask(builder, like, rate, direction.further_draws + 3 + static_cast<std::uint64_t>(gate)));
  }
  return masks;
}

void check_activation(std::string_view kind, Activation activation) {
  // The backward pass knows outputs alone, and these are differentiated by them.
  using enum Activation;
  if (activation == linear || activation == relu || activation == tanh || activation == sigmoid) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs an activation linear, relu, tanh or sigmoid, not {}", kind, name(activation)));
}

}  // namespace

std::size_t state_count(RecurrentKind kind) {
  return kind == RecurrentKind::lstm ? 2 : 1;
}

RecurrentInputs recurrent_inputs(const RecurrentSettings& settings, std::span<const Value> inputs,
                                 std::size_t directions) {
  const std::size_t masks = settings.options.takes_mask ? 1 : 0;
  const std::size_t states = directions * state_count(settings.kind);
  // The number of inputs says whether there are states; options say whether there is a mask.
  if (inputs.size() != 1 + masks && inputs.size() != 1 + states + masks) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it takes a sequence, then {} or none, and {}, not {} inputs",
                            states == 1 ? "an initial state" : fmt::format("{} arrays of initial states", states),
                            masks == 0 ? "no mask" : "then a mask", inputs.size()));
  }
  const Shape& shape = inputs[0].shape();
  if (shape.rank() != 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it takes a sequence [steps, width], not {}; reshape() it", shape.to_string()));
  }
  RecurrentInputs result = {.x = inputs[0], .states = {}, .mask = std::nullopt};
  for (std::size_t place = 1; place + masks < inputs.size(); ++place) {
    if (inputs[place].shape() != Shape{settings.units}) {
      throw Error(ErrorCode::invalid_argument, fmt::format("its initial states have the shape [{}], not {}",
                                                           settings.units, inputs[place].shape().to_string()));
    }
    result.states.push_back(inputs[place]);
  }
  if (masks == 0) return result;
  if (inputs.back().shape() != Shape{shape[0]}) {
    throw Error(ErrorCode::invalid_argument, fmt::format("its mask has the shape {}; a sequence of {} steps needs [{}]",
                                                         inputs.back().shape().to_string(), shape[0], shape[0]));
  }
  // Masks of Keras are booleans; kernels compare a float with 0.
  result.mask = cast(inputs.back(), DType::f32);
  return result;
}

RecurrentOutputs recurrent_outputs(LayerBuilder& builder, const RecurrentSettings& settings,
                                   const RecurrentInputs& inputs, const RecurrentDirection& direction) {
  const RecurrentOptions& options = settings.options;
  const Weights weights = weights_of(builder, settings, inputs.x.shape()[1], direction.prefix);
  const Value products = input_products(builder, settings, weights, inputs.x, direction);
  const RecurrenceInputs steps = {.x = products,
                                  .recurrent_kernel = weights.recurrent_kernel,
                                  .recurrent_bias = weights.recurrent_bias,
                                  .mask = inputs.mask,
                                  .state = inputs.states.empty() ? MaybeValue() : inputs.states[0],
                                  .cell = inputs.states.size() < 2 ? MaybeValue() : inputs.states[1]};
  const RecurrenceOptions step_options = {.kind = cell_kind(settings.kind),
                                          .activation = options.activation,
                                          .recurrent_activation = options.recurrent_activation,
                                          .is_reversed = direction.is_reversed,
                                          .has_sequence = options.return_sequences};
  const RecurrentStepOptions further = {.state_masks = state_masks(builder, settings, products, direction),
                                        .resets_before = settings.kind == RecurrentKind::gru && !options.reset_after};
  // The kernels of cells know neither. Such layers are a graph of steps, which is slower and needs no kernel.
  const bool is_plain = further.state_masks.empty() && !further.resets_before;
  const RecurrenceOutputs found =
      is_plain ? recurrence(steps, step_options) : recurrence_step_by_step(steps, step_options, further);
  // The output of a step is its state, so the last one is there without the sequence.
  RecurrentOutputs outputs = {.output = found.sequence ? *found.sequence : found.state, .states = {found.state}};
  // The state, then the cell, as in Keras and as recurrent_inputs() takes them.
  if (found.cell) outputs.states.push_back(*found.cell);
  return outputs;
}

void check_settings(std::string_view kind, const RecurrentSettings& settings) {
  const RecurrentOptions& options = settings.options;
  check_extent(kind, "a number of units", settings.units);
  check_activation(kind, options.activation);
  check_activation(kind, options.recurrent_activation);
  check_rate(kind, options.dropout);
  check_rate(kind, options.recurrent_dropout);
  // An initializer fills a whole array, and this one is filled with given values.
  const bool has_forget_bias = settings.kind == RecurrentKind::lstm && options.use_bias && options.unit_forget_bias;
  if (!has_forget_bias || options.bias_initializer == Initializer::zeros()) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} has a forget bias that begins with 1, and so the others begin with 0, not with {}; choose "
                  ".unit_forget_bias = false, or leave bias_initializer out",
                  kind, options.bias_initializer.name()));
}

void write_settings(ConfigWriter& config, const RecurrentSettings& settings) {
  const RecurrentOptions& options = settings.options;
  config.integer("units", settings.units);
  config.text("activation", name(options.activation));
  if (settings.kind != RecurrentKind::simple) config.text("recurrent_activation", name(options.recurrent_activation));
  config.boolean("use_bias", options.use_bias);
  if (settings.kind == RecurrentKind::lstm) config.boolean("unit_forget_bias", options.unit_forget_bias);
  config.boolean("return_sequences", options.return_sequences);
  config.boolean("return_state", options.return_state);
  config.boolean("go_backwards", options.go_backwards);
  config.boolean("mask", options.takes_mask);
  config.number("dropout", options.dropout);
  // Files of models without these options have the text of before there were any.
  if (options.recurrent_dropout != 0) config.number("recurrent_dropout", options.recurrent_dropout);
  if (settings.kind == RecurrentKind::gru && !options.reset_after) config.boolean("reset_after", false);
  config.text("kernel_initializer", options.kernel_initializer.name());
  config.text("recurrent_initializer", options.recurrent_initializer.name());
  config.text("bias_initializer", options.bias_initializer.name());
  write_limits(config, "kernel", options.kernel_regularizer, options.kernel_constraint);
  write_limits(config, "recurrent", options.recurrent_regularizer, options.recurrent_constraint);
  write_limits(config, "bias", options.bias_regularizer, options.bias_constraint);
}

RecurrentSettings read_settings(RecurrentKind kind, ConfigReader& config) {
  RecurrentSettings settings = {.kind = kind, .units = config.integer("units")};
  RecurrentOptions& options = settings.options;
  options.activation = activation_from_name(config.text("activation"));
  if (kind != RecurrentKind::simple) {
    options.recurrent_activation = activation_from_name(config.text("recurrent_activation"));
  }
  options.use_bias = config.boolean("use_bias");
  if (kind == RecurrentKind::lstm) options.unit_forget_bias = config.boolean("unit_forget_bias");
  options.return_sequences = config.boolean("return_sequences");
  options.return_state = config.boolean("return_state");
  options.go_backwards = config.boolean("go_backwards");
  options.takes_mask = config.boolean("mask");
  options.dropout = config.number("dropout");
  if (config.has("recurrent_dropout")) options.recurrent_dropout = config.number("recurrent_dropout");
  if (kind == RecurrentKind::gru && config.has("reset_after")) options.reset_after = config.boolean("reset_after");
  options.kernel_initializer = Initializer::from_name(config.text("kernel_initializer"));
  options.recurrent_initializer = Initializer::from_name(config.text("recurrent_initializer"));
  options.bias_initializer = Initializer::from_name(config.text("bias_initializer"));
  options.kernel_regularizer = read_regularizer(config, "kernel_regularizer");
  options.recurrent_regularizer = read_regularizer(config, "recurrent_regularizer");
  options.bias_regularizer = read_regularizer(config, "bias_regularizer");
  options.kernel_constraint = read_constraint(config, "kernel_constraint");
  options.recurrent_constraint = read_constraint(config, "recurrent_constraint");
  options.bias_constraint = read_constraint(config, "bias_constraint");
  return settings;
}

}  // namespace holdfast
