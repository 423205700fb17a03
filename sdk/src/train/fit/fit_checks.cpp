// A mistake in a call of fit() costs a sentence here, and hours of training if it is noticed later or never.
// docs/decisions/losses.md

#include "train/fit/fit_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "data/batches/shared_samples.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "nn/model/chosen_names.h"
#include "train/context/array_places.h"
#include "train/state/batch_changes.h"
#include "train/state/monitor.h"
#include "train/step/model_trainable.h"

namespace holdfast {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

// What to write instead of targets of the shape `given`; both are shapes of one sample. A user thinks of the whole
// tensor, so `n` stands for the samples.
std::string advice_on_targets(const Shape& given, const Shape& wanted) {
  const auto counted = [](const Shape& shape) {
    std::string text = "n";
    for (const std::int64_t extent : shape.extents()) text += ", " + std::to_string(extent);
    return text;
  };
  std::string advice = fmt::format(": pass a tensor of shape [{}], not [{}]", counted(wanted), counted(given));
  // The usual mistake is [n] for [n, 1], or the other way round.
  if (given.element_count() == wanted.element_count()) {
    advice += fmt::format("; the numbers may stay as they are: Tensor(Shape{{{}}}, numbers)", counted(wanted));
  } else if (wanted.rank() == 0 && given.rank() == 1) {
    advice += ". It takes one number a sample, the class; one-hot rows are for CategoricalCrossentropy";
  } else if (wanted.rank() == 1 && given.element_count() == 1) {
    advice += ". It takes a row for each sample; numbers of classes are for SparseCategoricalCrossentropy";
  }
  return advice;
}

[[noreturn]] void refuse_data(const char* purpose, const std::string& sentence) {
  refuse(fmt::format("the data set given to {} {}", purpose, sentence));
}

// ": "ids" of i32 [128], ...", if there are several.
std::string list_of(const std::vector<ArraySpec>& arrays) {
  if (arrays.size() < 2) return {};
  std::vector<std::string> texts;
  for (const ArraySpec& array : arrays) texts.push_back(array.to_string());
  return fmt::format(": {}", fmt::join(texts, ", "));
}

// Arrays that have all names of the model were matched by name before, all others by position. There a name that
// another array of the model has shows that the order is wrong. Where there is one array, its name says nothing: a
// column of a table is called after what it holds.
std::optional<std::string> problem_of_name(const ArraySpec& given, const std::vector<ArraySpec>& wanted,
                                           std::size_t index, const char* what, const std::vector<bool>& are_chosen) {
  if (given.name.empty() || wanted.size() == 1 || given.name == wanted[index].name) return std::nullopt;
  const auto other = std::ranges::find(wanted, given.name, &ArraySpec::name);
  if (other == wanted.end()) {
    // A name that the model chose, such as "dense_1", does not contradict another one.
    if (index >= are_chosen.size() || !are_chosen[index]) return std::nullopt;
    return fmt::format(
        "has \"{}\" as {} {}, where the model takes \"{}\", and the model has no array of that name; give the arrays "
        "the names of the model, or none{}",
        given.name, what, index, wanted[index].name, list_of(wanted));
  }
  return fmt::format(
      "has \"{}\" as {} {}, where the model takes \"{}\"; give the arrays in the order of the model, or all of them "
      "its names{}",
      given.name, what, index, wanted[index].name, list_of(wanted));
}

std::optional<std::string> problem_of_input(const ArraySpec& given, const std::vector<ArraySpec>& inputs,
                                            std::size_t index, const std::vector<bool>& are_chosen) {
  if (auto problem = problem_of_name(given, inputs, index, "input", are_chosen)) return problem;
  const ArraySpec& wanted = inputs[index];
  const std::string which = inputs.size() == 1 ? "" : fmt::format(" for input \"{}\"", wanted.name);
  if (given.shape != wanted.shape) {
    return fmt::format(
        "has samples of shape {}{}, the model takes {}; give the samples that shape, for example by map(), or declare "
        "the model's input with theirs",
        given.shape.to_string(), which, wanted.shape.to_string());
  }
  if (given.dtype == wanted.dtype) return std::nullopt;
  return fmt::format(
      "has samples of {}{}, the model takes {}; declare the input as input(shape, {{.dtype = DType::{}}}), or with "
      "Input of a Sequential, and cast or rescale it in the model",
      name(given.dtype), which, name(wanted.dtype), name(given.dtype));
}

std::optional<std::string> problem_of_target(const ArraySpec& given, const std::vector<ArraySpec>& targets,
                                             std::size_t index, const std::vector<bool>& are_chosen, bool converts) {
  if (auto problem = problem_of_name(given, targets, index, "target", are_chosen)) return problem;
  const ArraySpec& wanted = targets[index];
  const std::string which = targets.size() == 1 ? "" : fmt::format(" for output \"{}\"", wanted.name);
  if (given.shape != wanted.shape) {
    return fmt::format("has targets of shape {} a sample{}, the loss takes {}{}", given.shape.to_string(), which,
                       wanted.shape.to_string(), advice_on_targets(given.shape, wanted.shape));
  }
  // Holdfast's own models convert targets to f32. A Trainable of an application sees the words as they are.
  if (converts || given.dtype == wanted.dtype) return std::nullopt;
  return fmt::format("has targets of {}{}, the model takes {}", name(given.dtype), which, name(wanted.dtype));
}

// A Trainable of an application takes arrays by position.
std::vector<std::size_t> places_in_order(std::size_t count) {
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

void require_distinct_callbacks(const std::vector<CallbackHandle>& callbacks) {
  std::set<std::string> names;
  for (const CallbackHandle& callback : callbacks) {
    if (names.insert(callback->name()).second) continue;
    refuse(
        fmt::format("two callbacks of one fit() are called \"{}\", and the state of one would be lost; give one "
                    "another name()",
                    callback->name()));
  }
}

// There is room for one copy, and two callbacks would end fit() with different weights.
void require_one_keeper_of_weights(const std::vector<CallbackHandle>& callbacks) {
  std::vector<std::string> keepers;
  for (const CallbackHandle& callback : callbacks) {
    if (callback->keeps_weights()) keepers.push_back(fmt::format("\"{}\"", callback->name()));
  }
  if (keepers.size() < 2) return;
  refuse(
      fmt::format("the callbacks {} of one fit() would each end it with other weights; let one of them restore the "
                  "best ones",
                  fmt::join(keepers, " and ")));
}

// All names that logs will have, with any numbers: only the names are looked at.
void require_monitored_names(const Trainable& trainable, const FitOptions& options) {
  Logs logged;
  for (const std::string& name : trainable.result_names()) {
    logged[name] = 0;
    if (options.validation) logged["val_" + name] = 0;
  }
  const bool is_ever_validated = options.epochs >= options.validation_every;
  for (const CallbackHandle& callback : options.callbacks) {
    for (const std::string& name : callback->monitors()) {
      // It would watch all epochs and never act.
      if (is_ever_validated || !name.starts_with("val_") || !logged.contains(name)) continue;
      refuse(
          fmt::format("the callback \"{}\" watches {}, and no epoch is validated: there are {} epochs, and "
                      "validation_every is {}; validate more often, or let it watch {}",
                      callback->name(), name, options.epochs, options.validation_every, name.substr(4)));
    }
    // monitored() throws with the names that there are. Without this look it would do so after the first epoch.
    for (const std::string& name : callback->monitors()) monitored(logged, name, callback->name());
    // Keras refuses such a metric, too: a wrong guess would keep the worst epoch.
    for (const std::string& name : callback->compares()) {
      const std::string result = name.starts_with("val_") ? name.substr(4) : name;
      if (!trainable.best_of(result)) refuse(unknown_direction(name, callback->name()));
    }
  }
}

// A validation on samples that were trained on looks better than it is, and nothing else would show it.
void require_samples_apart(const Dataset& data, const FitOptions& options) {
  // Only stages are compared, so the check costs as little for a large data set as for a small one.
  if (!options.validation || options.accept_shared_samples) return;
  const std::optional<SharedSamples> common = shared_samples(data, *options.validation);
  if (!common) return;
  refuse(fmt::format(
      "fit() would validate on samples that it trains on: {} of the {} samples that can come to validation can come to "
      "training, too{}`const auto [training, validation] = data.split(0.2);`, then training.shuffle() in one place and "
      "validation in the other. To validate on training data on purpose, say .accept_shared_samples = true",
      common->shared, common->of_validation,
      common->are_mixed_by_shuffle
          ? ", since a shuffle() stands before a take() or skip() and brings other samples there in each epoch. Write "
            "take() and skip() before shuffle(), or let split() do it: "
          : ". Write "));
}

// The trained layers whose statistics over a shard of one sample are that sample alone.
std::vector<std::string> normalized_by_sample(const Model& model) {
  std::vector<std::string> names;
  for (const ModelLayer& layer : model.layers()) {
    if (layer.layer->kind() != "BatchNormalization" || layer.is_frozen || layer.input_shape.rank() == 0) continue;
    const std::int64_t channels = layer.input_shape[layer.input_shape.rank() - 1];
    // Positions of one sample are rows of their own, which differ.
    if (layer.input_shape.element_count() == channels) names.push_back(fmt::format("\"{}\"", layer.name));
  }
  return names;
}

}  // namespace

// Refused, although it is a training: its layer gives beta for every input, so nothing before the layer ever learns.
void require_rows_to_normalize(const Dataset& data, const Trainable& trainable, int shards, bool warns) {
  const auto* const of_model = dynamic_cast<const ModelTrainable*>(&trainable);
  const std::int64_t samples = std::min(data.batch_size(), data.size());
  // Shards differ by one sample at most, so with twice as many samples each has two.
  if (of_model == nullptr || samples >= std::int64_t{2} * shards) return;
  const std::vector<std::string> names = normalized_by_sample(of_model->model());
  if (names.empty()) return;
  const std::string advice = fmt::format(
      "batches of at least {} samples, twice the number of shards, or fewer shards, or a LayerNormalization, "
      "which normalizes each sample by itself",
      std::int64_t{2} * shards);
  if (samples <= shards) {
    refuse(fmt::format(
        "fit() cuts batches of {} samples into {} shards of at most one sample, and BatchNormalization {} "
        "normalizes the samples of a shard: it would give the same output for any input, and nothing before "
        "it would learn; use {}",
        samples, shards, fmt::join(names, ", "), advice));
  }
  if (!warns) return;
  log(LogLevel::warning,
      fmt::format(
          "fit() cuts batches of {} samples into {} shards, some of one sample, for which BatchNormalization {} "
          "gives the same output whatever the input; better are {}",
          samples, shards, fmt::join(names, ", "), advice));
}

// No mistake in itself: a program may validate and save what it has just frozen. Keras warns, too.
void warn_of_nothing_to_train(const Trainable& trainable) {
  const auto* const of_model = dynamic_cast<const ModelTrainable*>(&trainable);
  if (of_model == nullptr || !of_model->model().parameters().entries().empty()) return;
  // The weights of frozen layers are buffers. A model that never had weights needs no advice.
  const bool has_frozen_weights = std::ranges::any_of(
      of_model->model().layers(), [](const ModelLayer& layer) { return layer.is_frozen && layer.buffer_count > 0; });
  if (!has_frozen_weights) return;
  log(LogLevel::warning,
      "fit() changes no weight, since all layers with weights are frozen; give the Trainer, or its compile(), a model "
      "in which some are not (Model::unfrozen())");
}

Weights weights_to_validate(const FitOptions& options) {
  const bool reads_averages =
      std::ranges::any_of(options.callbacks, [](const CallbackHandle& callback) { return callback->reads_averages(); });
  return reads_averages ? Weights::averaged : Weights::trained;
}

void require_distinct_sums(const std::vector<std::string>& names) {
  std::set<std::string> logged;
  for (const std::string& name : names) {
    if (logged.insert(name).second) continue;
    refuse(name == "loss"
               ? "a metric is called \"loss\", as the loss is; give it a name of its own: {.name = ...}"
               : fmt::format("two metrics are called \"{}\", and one of them would be lost; give one another "
                             "name: {{.name = ...}}",
                             name));
  }
  for (const std::string& name : names) {
    // Logs of training and validation share one map. One of the two would overwrite the other.
    if (!logged.contains("val_" + name)) continue;
    refuse(fmt::format(
        "a metric is called \"val_{0}\", as the validation's {0} is; give it another name: {{.name = ...}}", name));
  }
}

void require_fitting_inputs(const Dataset& data, const Trainable& trainable, const char* purpose) {
  const auto require = [&](bool condition, const std::string& sentence) {
    if (!condition) refuse_data(purpose, sentence);
  };
  require(data.batch_size() > 0, "has no batch size: end it with batch(n)");
  // With drop_remainder, fewer samples than a batch leave nothing to train on, and fit() would end at once.
  require(data.size() > 0, "has no samples; look at its take() and skip(), which left none");
  require(data.batches() > 0, fmt::format("has {} samples and no whole batch of {}; make batches smaller, or leave out "
                                          "drop_remainder",
                                          data.size(), data.batch_size()));
  const std::vector<ArraySpec> inputs = trainable.inputs();
  require(data.inputs().size() == inputs.size(),
          fmt::format("has {} inputs, the model takes {}{}", data.inputs().size(), inputs.size(), list_of(inputs)));
  // A Trainable of an application says nothing of where its names come from.
  const auto* const of_model = dynamic_cast<const ModelTrainable*>(&trainable);
  const std::vector<bool> are_chosen = of_model ? chosen_input_names(of_model->model()) : std::vector<bool>();
  std::vector<std::size_t> places = places_in_order(inputs.size());
  if (of_model != nullptr) find_array_places(data.inputs(), of_model->model().inputs(), places);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto problem = problem_of_input(data.inputs()[places[i]], inputs, i, are_chosen);
    if (problem) refuse_data(purpose, *problem);
  }
}

void require_fitting_data(const Dataset& data, const Trainable& trainable, const char* purpose) {
  require_fitting_inputs(data, trainable, purpose);
  const std::vector<ArraySpec> targets = trainable.targets();
  if (data.targets().size() != targets.size()) {
    refuse_data(purpose, fmt::format("has {} targets, the losses take {}{}", data.targets().size(), targets.size(),
                                     list_of(targets)));
  }
  const auto* const of_model = dynamic_cast<const ModelTrainable*>(&trainable);
  const std::vector<bool> are_chosen = of_model ? chosen_output_names(of_model->model()) : std::vector<bool>();
  std::vector<std::size_t> places = places_in_order(targets.size());
  if (of_model != nullptr) find_array_places(data.targets(), of_model->model().outputs(), places);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const ArraySpec& given = data.targets()[places[i]];
    const auto problem = problem_of_target(given, targets, i, are_chosen, trainable.converts_targets());
    if (problem) refuse_data(purpose, *problem);
  }
  // Weights stand after all targets.
  if (data.has_sample_weights()) trainable.check_sample_weights(data.target_layout().arrays().back());
}

static void require_sensible_batch(const GlobalBatch& batch, const Trainable& trainable) {
  // Options without effect are refused: their author expects one.
  const bool has_others = batch.rate_for_replicas != 0 || !batch.replay.empty();
  if (batch.policy == BatchPolicy::fixed && has_others) {
    refuse(
        "fit() with rate_for_replicas or replay of global_batch, and a fixed batch, which neither changes; set .policy "
        "= BatchPolicy::per_replica, or leave them out");
  }
  if (batch.rate_for_replicas < 0) {
    refuse(fmt::format("fit() with rate_for_replicas = {}: it is a number of replicas, or 0 for a rate that stays",
                       batch.rate_for_replicas));
  }
  const std::string problem = problem_of_replay(batch.replay);
  if (!problem.empty()) {
    refuse(fmt::format("fit() with a list to replay that recorded_batches() does not return: {}", problem));
  }
  if (batch.rate_for_replicas == 0) return;
  // Also of a schedule, whose rate of each update is scaled.
  if (const auto* const of_model = dynamic_cast<const ModelTrainable*>(&trainable)) {
    return of_model->require_changeable_rate("rate_for_replicas scales", std::nullopt);
  }
  // Asked of the first update: a Trainable of an application need not have a rate at all.
  const std::optional<float> rate = trainable.learning_rate(1);
  if (!rate) {
    refuse(
        "fit() with rate_for_replicas, and a model whose Trainable::learning_rate() says nothing; override it, or "
        "leave "
        "out rate_for_replicas");
  }
  try {
    trainable.check_learning_rate(*rate);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("fit() with rate_for_replicas needs a model that takes the rate of a "
                                          "callback, and this one says: {}",
                                          error.what()));
  }
}

// In the order of the options, and the data last: its check is the only one that a user may switch off.
void require_sensible_options(const Dataset& data, const FitOptions& options, const Trainable& trainable, int shards) {
  if (options.epochs < 1) refuse(fmt::format("fit() of {} epochs: there must be at least 1", options.epochs));
  if (options.validation_every < 1) {
    refuse(
        fmt::format("fit() with validation_every = {}: validation takes place every 1 or more epochs; leave out "
                    ".validation for none",
                    options.validation_every));
  }
  if (options.steps_per_epoch < 0) {
    refuse(
        fmt::format("fit() with steps_per_epoch = {}: an epoch has 1 or more steps, or those of a pass over the "
                    "data with 0",
                    options.steps_per_epoch));
  }
  // Shards are counted in 32 bits.
  if (options.accumulate < 1 || options.accumulate > std::numeric_limits<int>::max() / shards) {
    refuse(fmt::format("fit() with accumulate = {}: a step takes 1 or more batches, and with {} shards at most {}",
                       options.accumulate, shards, std::numeric_limits<int>::max() / shards));
  }
  require_sensible_batch(options.global_batch, trainable);
  require_distinct_callbacks(options.callbacks);
  require_one_keeper_of_weights(options.callbacks);
  const GradientChecks& checks = options.check_gradients;
  if (checks.every < 0 || checks.shards < 0) {
    refuse(
        fmt::format("fit() with check_gradients of {} shards every {} steps: neither can be negative; every = 0 makes "
                    "no checks",
                    checks.shards, checks.every));
  }
  require_monitored_names(trainable, options);
  if (weights_to_validate(options) == Weights::averaged && !trainable.keeps_averages()) {
    refuse(
        "fit() has a callback that reads moving averages of the weights, as SwapEMAWeights does, and the optimizer "
        "keeps "
        "none; give it the option .use_ema = true, or leave the callback out");
  }
  require_samples_apart(data, options);
}

}  // namespace holdfast
