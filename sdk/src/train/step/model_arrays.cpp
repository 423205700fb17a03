// The arrays of a ModelTrainable. Which ones there are follows from the frozen layers and the names of the slots alone.
// So a process that joins a run lays them out by a text, before it has the optimizer that made them.
// docs/decisions/calls.md

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "nn/model/description.h"
#include "nn/model/named_weights.h"
#include "optim/clipping_options.h"
#include "train/context/configuration_json.h"
#include "train/step/model_trainable.h"
#include "train/step/weight_averaging.h"

namespace holdfast {

void ModelTrainable::allocate() {
  const auto arena = [this](std::size_t floats) { return Arena{memory().allocate(floats), floats}; };
  parameters_ = arena(model_.parameters().float_count());
  buffers_ = arena(model_.buffers().float_count());
  // Found when an update first needs it, which most updates do not.
  own_gradients_ = {};
  slots_.clear();
  slot_spans_.clear();
  for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) slots_.push_back(arena(parameters_.size));
  for (const Arena& slot : slots_) slot_spans_.push_back(slot.span());
  if (has_averages()) slot_spans_.pop_back();
  prepare_penalties();
}

// What evaluation reads. Training always reads the parameters themselves.
std::span<const float> ModelTrainable::weights() const {
  return reads_averages_ && has_averages() ? slots_.back().span() : parameters_.span();
}

// What depends on the optimizer itself, and on the layout of the parameters.
void ModelTrainable::begin_optimizer() {
  if (!memory().is_host() && optimizer_->pass(1) == nullptr) {
    log(LogLevel::info, fmt::format("optimizer {} is computed on the host, with copies of parameters, gradients and "
                                    "slots in each step; derive it from DescribedOptimizer to compute on {}",
                                    optimizer_->name(), memory().device()));
  }
  grouped_.reset();
  if (!optimizer_->parameter_rules().is_empty() || optimizer_->needs_whole_arrays()) {
    std::vector<std::string> names;
    const ModelDescription& model = *model_.description();
    for (const WeightPlace& place : model.parameters_in_order()) {
      names.push_back(model.layout_of(place).entries()[place.entry].name);
    }
    grouped_.emplace(*optimizer_, model_.parameters(), names);
  }
  averaging_ = averaging_of(optimizer_->weight_average());
  clipper_.reset();
  const GradientClipping clipping = optimizer_->clipping();
  if (!clipping.value && !clipping.norm && !clipping.global_norm) return;
  std::vector<compute::NormRange> arrays;
  // Norms are of each array without its padding, which is zero but would move the chunks of the sum.
  for (const ArenaEntry& entry : model_.parameters().entries()) {
    arrays.push_back({.begin = entry.offset, .end = entry.offset + entry.element_count()});
  }
  clipper_.emplace(clipping, std::move(arrays), parameters_.size, memory(),
                   workers_.front().program->backend().device_kernels());
}

void ModelTrainable::initialize(std::uint64_t seed) {
  if (has_given_weights_) {
    memory().copy_from_host(model_.parameter_values(), parameters_.span());
    memory().copy_from_host(model_.buffer_values(), buffers_.span());
  } else {
    // Drawn on the host, so a device begins with the same bits as a CPU.
    std::vector<float> parameters(parameters_.size);
    std::vector<float> buffers(buffers_.size);
    model_.initialize(seed, parameters, buffers);
    memory().copy_from_host(parameters, parameters_.span());
    memory().copy_from_host(buffers, buffers_.span());
  }
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) initialize_slot(slot, *given_optimizer_);
}

// The parameters are there by then, with which averages begin: an average of zeros and weights would be of no use.
void ModelTrainable::initialize_slot(std::size_t slot, const Optimizer& optimizer) {
  if (slot >= slot_spans_.size()) return memory().copy(parameters_.span(), slots_[slot].span());
  memory().fill_zero(slots_[slot].span());
  const float value = optimizer.initial_value_of_slot(slot);
  if (value == 0) return;
  // Padding stays zero, so each array is filled by itself.
  std::vector<float> values(parameters_.size);
  for (const ArenaEntry& entry : model_.parameters().entries()) {
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(entry.offset), entry.element_count(), value);
  }
  memory().copy_from_host(values, slots_[slot].span());
}

// The order of the spans is that in which states are compared, sent and saved. A frozen parameter keeps its place among
// the others, so that equal weights have equal digests.
std::vector<StateSpan> ModelTrainable::state() {
  std::vector<StateSpan> spans;
  const auto append = [&](const ArenaLayout& layout, std::span<float> arena, std::size_t entry,
                          const std::string& prefix, StateKind kind) {
    const ArenaEntry& of = layout.entries()[entry];
    spans.push_back({prefix + of.name, kind, of.shape, layout.view(arena, entry)});
  };
  const ModelDescription& model = *model_.description();
  for (const WeightPlace& place : model.parameters_in_order()) {
    append(model.layout_of(place), place.is_in_buffers ? buffers_.span() : parameters_.span(), place.entry, "model/",
           StateKind::parameter);
  }
  for (std::size_t entry = 0; entry < model.buffer_starts.size(); ++entry) {
    if (model.buffer_starts[entry].is_parameter) continue;
    append(model.buffers, buffers_.span(), entry, "model/", StateKind::buffer);
  }
  for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) {
    for (std::size_t entry = 0; entry < model.parameters.entries().size(); ++entry) {
      append(model.parameters, slots_[slot].span(), entry, "optimizer/" + slot_names_[slot] + "/",
             StateKind::optimizer_slot);
    }
  }
  return spans;
}

std::string ModelTrainable::describe_training(const Model& model, const Optimizer& optimizer) const {
  const Model same = model.with_frozen_layers(given_.frozen_layers());
  if (same.graph() != given_.graph()) {
    throw Error(
        ErrorCode::invalid_argument,
        "compile() was given a model of other layers than the Trainer's; give it that model, or a copy that its "
        "frozen() or unfrozen() made");
  }
  const std::unique_ptr<Optimizer> clone = optimizer.clone();
  require_own_clone("optimizer", optimizer, *clone);
  check_clipping(clone->name(), clone->clipping());
  // A rule that cannot be computed is refused here, and not in the first step.
  clone->pass(1);
  const std::string whose = name_of_class("optimizer", optimizer.name(), typeid(optimizer));
  // A resume compares this text, which has sorted members.
  return nlohmann::json{{"frozen", model.frozen_layers()},
                        {"optimizer", json_given_by(whose, "configuration()", optimizer.configuration())},
                        {"slots", slots_of(optimizer)}}
      .dump();
}

void ModelTrainable::lay_out(const std::string& training) {
  if (training == training_) return;
  std::vector<std::string> slots = slots_of(*given_optimizer_);
  std::int64_t first_step = 0;
  Model model = given_;
  if (!training.empty()) {
    try {
      const nlohmann::json object = nlohmann::json::parse(training);
      slots = object.at("slots").get<std::vector<std::string>>();
      first_step = object.at("first_step").get<std::int64_t>();
      model = given_.with_frozen_layers(object.at("frozen").get<std::vector<std::string>>());
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorCode::invalid_file,
                  "the record of a compile() cannot be read: another program or a later version of Holdfast wrote it");
    }
  }
  model_ = model;
  slot_names_ = std::move(slots);
  first_step_ = first_step;
  training_ = training;
  // Each waits for what it has queued, so the old arrays are free by then.
  for (WorkerState& worker : workers_) worker.program->replace_model(model_);
  allocate();
  begin_optimizer();
  for (WorkerState& worker : workers_) worker.program->read_buffers_from(buffers_.span());
}

// By name and on the host, since a layer that is frozen or no longer frozen changes its arena.
void ModelTrainable::change_training(const std::string& training, const Optimizer& optimizer) {
  std::vector<float> parameters(parameters_.size);
  std::vector<float> buffers(buffers_.size);
  memory().copy_to_host(parameters_.span(), parameters);
  memory().copy_to_host(buffers_.span(), buffers);
  const Model before = model_;
  lay_out(training);
  const ModelWeights::Values weights = weights_by_name(model_, before, parameters, buffers);
  memory().copy_from_host(weights.parameters, parameters_.span());
  memory().copy_from_host(weights.buffers, buffers_.span());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) initialize_slot(slot, optimizer);
}

// A process that joins later calls lay_out() without this: it has no optimizer of that call, and makes no step in it.
void ModelTrainable::train_with(const Model& model, const Optimizer& optimizer) {
  compiled_ = model;
  optimizer_ = optimizer.clone();
  changed_optimizer_ = {};
  begin_optimizer();
}

ModelWeights::Values ModelTrainable::values_for(const Model& model) {
  std::vector<float> parameters(parameters_.size);
  std::vector<float> buffers(buffers_.size);
  memory().copy_to_host(weights(), parameters);
  memory().copy_to_host(buffers_.span(), buffers);
  // One copy of the weights is enough where the layouts are the same.
  if (model.description() == model_.description()) return {std::move(parameters), std::move(buffers)};
  return weights_by_name(model, model_, parameters, buffers);
}

Model ModelTrainable::present_model() {
  Model copy = compiled_.with_frozen_layers(compiled_.frozen_layers());
  ModelWeights::Values values = values_for(copy);
  copy.set_weights(std::move(values.parameters), std::move(values.buffers));
  return copy;
}

void ModelTrainable::on_fit_end() {
  for (Model* const model : {&given_, &compiled_}) {
    // Copies share their weights.
    if (model == &compiled_ && compiled_.description() == given_.description()) continue;
    ModelWeights::Values values = values_for(*model);
    model->set_weights(std::move(values.parameters), std::move(values.buffers));
  }
}

}  // namespace holdfast
