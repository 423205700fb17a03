#include "train/model_trainable.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

void append_spans(const ArenaLayout& layout, std::span<float> arena, const std::string& prefix, StateKind kind,
                  std::vector<StateSpan>& spans) {
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    spans.push_back(
        {prefix + layout.entries()[entry].name, kind, layout.entries()[entry].shape, layout.view(arena, entry)});
  }
}

}  // namespace

ModelTrainable::ModelTrainable(const Sequential& model, const Optimizer& optimizer, const Loss& loss,
                               std::vector<std::shared_ptr<const Metric>> metrics)
    : model_(model),
      has_given_weights_(model.has_weights()),
      optimizer_(optimizer.clone()),
      loss_(loss.clone()),
      metrics_(std::move(metrics)),
      parameters_(model_.parameters().float_count()),
      buffers_(model_.buffers().float_count()),
      slots_(optimizer_->slot_names().size(), std::vector<float>(parameters_.size())) {
  loss_->target_shape(model_.output_shape());  // throws where the two do not fit
}

std::string ModelTrainable::configuration() const {
  nlohmann::json metrics = nlohmann::json::array();
  for (const auto& metric : metrics_) metrics.push_back(nlohmann::json::parse(metric->configuration()));
  return nlohmann::json{{"optimizer", nlohmann::json::parse(optimizer_->configuration())},
                        {"loss", nlohmann::json::parse(loss_->configuration())},
                        {"metrics", metrics},
                        {"initial_weights", has_given_weights_ ? "given" : "drawn"}}
      .dump();
}

std::string ModelTrainable::arithmetic() const {
  HOLDFAST_ASSERT(!workers_.empty());
  return workers_.front().program->arithmetic();
}

void ModelTrainable::prepare(const Workers& workers) {
  // Those that are there have made their operations for the shapes that they met.
  while (static_cast<int>(workers_.size()) < workers.count) {
    workers_.push_back({std::make_unique<ModelProgram>(model_, workers.threads_per_shard), {}});
  }
}

void ModelTrainable::initialize(std::uint64_t seed) {
  for (std::vector<float>& slot : slots_) std::fill(slot.begin(), slot.end(), 0.0F);
  if (has_given_weights_) {
    std::copy(model_.parameter_values().begin(), model_.parameter_values().end(), parameters_.begin());
    std::copy(model_.buffer_values().begin(), model_.buffer_values().end(), buffers_.begin());
  } else {
    model_.initialize(seed, parameters_, buffers_);
  }
}

std::vector<StateSpan> ModelTrainable::state() {
  std::vector<StateSpan> spans;
  append_spans(model_.parameters(), parameters_, "model/", StateKind::parameter, spans);
  append_spans(model_.buffers(), buffers_, "model/", StateKind::buffer, spans);
  const std::vector<std::string> names = optimizer_->slot_names();
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    append_spans(model_.parameters(), slots_[slot], "optimizer/" + names[slot] + "/", StateKind::optimizer_slot, spans);
  }
  return spans;
}

std::vector<std::string> ModelTrainable::sum_names() const {
  std::vector<std::string> names = {"loss"};
  for (const auto& metric : metrics_) names.push_back(metric->name());
  return names;
}

std::size_t ModelTrainable::gradient_count() const {
  HOLDFAST_ASSERT(!workers_.empty());
  return parameters_.size() + workers_.front().program->contribution_count();
}

ModelTrainable::WorkerState& ModelTrainable::worker(const ShardBatch& batch) {
  HOLDFAST_ASSERT(batch.worker >= 0 && batch.worker < static_cast<int>(workers_.size()));
  WorkerState& state = workers_[static_cast<std::size_t>(batch.worker)];
  state.program->call_before_layers(batch.check_cancelled);
  return state;
}

void ModelTrainable::add_metrics(std::span<const float> outputs, const ShardBatch& batch, std::span<float> sums) const {
  for (std::size_t metric = 0; metric < metrics_.size(); ++metric) {
    sums[1 + metric] = metrics_[metric]->sum(outputs, batch.targets, batch.samples);
  }
}

void ModelTrainable::compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) {
  WorkerState& state = worker(batch);
  const std::span<const float> outputs =
      state.program->forward_training(batch.features, batch.samples, parameters_,
                                      {.seed = batch.seed, .step = batch.step, .first_sample = batch.first_sample});
  state.output_gradient.resize(outputs.size());
  const float scale = 1.0F / static_cast<float>(batch.batch_samples);
  sums[0] = loss_->evaluate(outputs, batch.targets, batch.samples, scale, state.output_gradient);
  add_metrics(outputs, batch, sums);
  const std::span<float> gradients = sink.gradients();
  state.program->backward(state.output_gradient, parameters_, gradients.first(parameters_.size()),
                          gradients.subspan(parameters_.size()));
  sink.ready(0, gradients.size());
}

void ModelTrainable::compute_sums(const ShardBatch& batch, std::span<float> sums) {
  const std::span<const float> outputs =
      worker(batch).program->forward_inference(batch.features, batch.samples, parameters_, buffers_);
  sums[0] = loss_->evaluate(outputs, batch.targets, batch.samples, 1.0F, {});
  add_metrics(outputs, batch, sums);
}

void ModelTrainable::predict(const ShardBatch& batch, std::span<float> outputs) {
  const std::span<const float> computed =
      worker(batch).program->forward_inference(batch.features, batch.samples, parameters_, buffers_);
  std::copy(computed.begin(), computed.end(), outputs.begin());
}

void ModelTrainable::apply_update(const Update& update) {
  const std::vector<std::span<float>> slots(slots_.begin(), slots_.end());
  optimizer_->update(update.step, parameters_, update.gradients.first(parameters_.size()), slots);
  workers_.front().program->update_buffers(update.gradients.subspan(parameters_.size()), buffers_);
}

void ModelTrainable::on_fit_end() {
  model_.set_weights(parameters_, buffers_);
}

}  // namespace holdfast
