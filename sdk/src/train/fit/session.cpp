#include "train/fit/session.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <typeinfo>
#include <utility>

#include "data/stage.h"
#include "holdfast/base/error.h"
#include "nn/checks.h"
#include "train/context/configuration_json.h"
#include "train/state/run_results.h"

namespace holdfast {
namespace {

Replica::Place& claim(Replica::Place& place) {
  if (place.has_trainer) {
    throw Error(ErrorCode::invalid_argument,
                "a run has one Trainer, which holds its whole state, and this program makes a second one: train and "
                "evaluate with the first, or give the second, which is not part of the run, a Replica::alone()");
  }
  place.has_trainer = true;
  return place;
}

// Means are kept by name, so two metrics with one name would lose one mean.
void require_distinct_sums(const std::vector<std::string>& names) {
  std::set<std::string> logged;
  for (const std::string& name : names) {
    if (logged.insert(name).second) continue;
    throw Error(ErrorCode::invalid_argument,
                name == "loss" ? "a metric is called \"loss\", as the loss is; give it a name of its own: {.name = ...}"
                               : "two metrics are called \"" + name +
                                     "\", and one of them would be lost; give one another name: {.name = ...}");
  }
  for (const std::string& name : names) {
    if (!logged.contains("val_" + name)) continue;
    throw Error(ErrorCode::invalid_argument, "a metric is called \"val_" + name + "\", as the validation's " + name +
                                                 " is; give it another name: {.name = ...}");
  }
}

// What to write in place of targets of such a shape.
std::string advice_on_targets(const Shape& given, const Shape& wanted) {
  const auto counted = [](const Shape& shape) {
    std::string text = "n";
    for (const std::int64_t extent : shape.extents()) text += ", " + std::to_string(extent);
    return text;
  };
  std::string advice = ": pass a tensor of shape [" + counted(wanted) + "], not [" + counted(given) + "]";
  if (given.element_count() == wanted.element_count()) {
    advice += "; the numbers may stay as they are: Tensor(Shape{" + counted(wanted) + "}, numbers)";
  } else if (wanted.rank() == 0 && given.rank() == 1) {
    advice += ". It takes one number a sample, the class; one-hot rows are for CategoricalCrossentropy";
  } else if (wanted.rank() == 1 && given.element_count() == 1) {
    advice += ". It takes a row for each sample; numbers of classes are for SparseCategoricalCrossentropy";
  }
  return advice;
}

}  // namespace

Trainer::Session::Session(Replica& replica, std::unique_ptr<Trainable> owned, Trainable& trainable)
    : place_(replica.shared_place()),
      owned_(std::move(owned)),
      trainable_(trainable),
      supervision_(*place_->supervision),
      files_(watched_files(*place_)),
      memory_schedule_(claim(*place_).memory_snapshot_every),
      memory_keeper_(supervision_, place_->now),
      savepoint_journal_(supervision_),
      writer_(
          files_, [this](const SavepointEvent& event) { savepoint_journal_.note(event); }, place_->saving_watch) {
  supervision_.enter(TrainingPhase::starting, 0);
  supervision_.reach(FaultPoint::start, -1);
  prepare_workers();
  state_.seed = place_->seed;
  state_.shards = place_->shards;
  state_.threads_per_shard = place_->threads_per_shard;
  state_.reduction = place_->reduction;
  require_distinct_sums(trainable_.sum_names());
  const std::string whose = name_of_class("model", "", typeid(trainable_));
  state_.graph = json_given_by(whose, "graph()", trainable_.graph()).dump();
  state_.configuration = json_given_by(whose, "configuration()", trainable_.configuration()).dump();
  trainable_.initialize(place_->seed);
  if (!place_->run_directory.empty()) StepRunner::prepare_memory(*place_, trainable_);
}

Trainer::Session::~Session() {
  place_->has_trainer = false;
}

void Trainer::Session::prepare_workers() {
  const int workers = StepRunner::workers_of(*place_);
  if (workers <= prepared_workers_) return;
  trainable_.prepare({.count = workers,
                      .threads_per_shard = place_->threads_per_shard,
                      .device = place_->device,
                      .precision = place_->precision});
  trainable_.memory().set_time_limit(place_->collective_timeout);
  prepared_workers_ = workers;
}

void Trainer::Session::check_data(const Dataset& data, const char* purpose) const {
  const auto require = [&](bool condition, const std::string& sentence) {
    if (!condition)
      throw Error(ErrorCode::invalid_argument, "the data set given to " + std::string(purpose) + " " + sentence);
  };
  require(data.batch_size() > 0, "has no batch size: end it with batch(n)");
  require(data.batches() > 0, "has no whole batch: it has " + std::to_string(data.size()) + " samples");
  require(data.feature_shape() == trainable_.feature_shape(),
          "has samples of shape " + data.feature_shape().to_string() + ", the model takes " +
              trainable_.feature_shape().to_string());
  const Shape& targets = data.target_shape();
  const Shape wanted = trainable_.target_shape();
  require(targets == wanted, "has targets of shape " + targets.to_string() + " a sample, the loss takes " +
                                 wanted.to_string() + advice_on_targets(targets, wanted));
}

std::size_t Trainer::Session::join_call(const std::string& kind, const Dataset& data, std::int64_t epochs) {
  take_state_back();
  ++calls_made_;
  CallRecord record;
  record.kind = kind;
  record.data = nlohmann::json::parse(data.description()).dump();
  record.epochs = epochs;
  rejoin_call(record);
  return calls_made_ - 1;
}

void Trainer::Session::rejoin_call(const CallRecord& call) {
  const std::size_t index = calls_made_ - 1;
  const auto is_open = [](const CallRecord& record) { return !record.is_finished; };
  if (std::any_of(state_.calls.begin(),
                  state_.calls.begin() + static_cast<std::ptrdiff_t>(std::min(index, state_.calls.size())), is_open) ||
      index > state_.calls.size()) {
    // The program cannot go back to an earlier call; a process that begins anew can.
    throw Error(ErrorCode::cancelled, "the run went back to a call before the one that this replica is in");
  }
  if (index == state_.calls.size()) {
    state_.calls.push_back(call);
    state_.epoch = 0;
    state_.batch = 0;
    is_epoch_begun_ = false;
    return;
  }
  if (call.kind == "fit" && state_.calls[index].kind == "fit") give_more_epochs(index, call.epochs);
  TrainState now = state_;
  now.calls[index].kind = call.kind;
  now.calls[index].data = call.data;
  now.calls[index].epochs = call.epochs;
  require_same_choices(state_, now, "its savepoint");
}

std::unique_ptr<BatchLoader> Trainer::Session::open_loader(const Dataset& data, std::int64_t epoch, std::int64_t batch,
                                                           std::int64_t end_epoch) {
  return std::make_unique<BatchLoader>(data, place_->seed, place_->shards, runner_->shards().begin,
                                       runner_->shards().end, epoch, batch, end_epoch, sample_ways(data));
}

// What is copied or pinned of a source stays so, whatever becomes of generations: no bit of it changes.
SampleWays Trainer::Session::sample_ways(const Dataset& data) {
  if (trainable_.memory().is_host() || !trainable_.reads_samples_on_device()) return {};
  const bool is_changed = data.last_stage()->source() == nullptr;
  const auto of_source = [&](auto& all) -> auto& {
    for (const auto& samples : all) {
      if (samples->are_source_of(data)) return *samples;
    }
    using Samples = typename std::decay_t<decltype(all)>::value_type::element_type;
    return *all.emplace_back(std::make_unique<Samples>(data, trainable_.memory()));
  };
  if (!is_changed && data.is_kept_on_device()) return {.resident = &of_source(resident_samples_)};
  if (data.prefetch_depth() == 0) return {};
  SampleWays ways;
  if (can_stage_) ways.stage = [this, data](const HostRows& rows) { return stage(data, rows); };
  if (!is_changed) ways.feeds = of_source(pinned_samples_).make_feeds(data);
  return ways;
}

// Where it failed, the log has said so, and need not again with each call.
SampleFeeds Trainer::Session::stage(const Dataset& data, const HostRows& rows) {
  SampleFeeds feeds = feeds_of_rows(data, rows, trainable_.memory());
  can_stage_ = feeds.are_there();
  return feeds;
}

void Trainer::Session::carry_through(std::size_t call, const std::function<void()>& act) {
  const CallRecord begun = record_of(call);
  while (!record_of(call).is_finished || is_closing_) {
    try {
      act();
      continue;
    } catch (const GenerationEnded&) {
    } catch (const RollBack&) {
      has_state_ = false;
    }
    enter_generation();
    rejoin_call(begun);
    if (has_taken_state_ && running_fit_ != nullptr) restore_callbacks(*running_fit_);
  }
}

Logs Trainer::Session::evaluate(const Dataset& data) {
  check_data(data, "evaluate()");
  join(data, WarmUp::inference);
  const std::size_t call = join_call("evaluate", data, 1);
  carry_through(call, [&] {
    const Logs results = evaluation_pass(data);
    supervision_.enter(TrainingPhase::callbacks, state_.step);
    record_of(call).results = results;
    record_of(call).is_finished = true;
  });
  place_->results = results_text(state_, weights_digest());
  return record_of(call).results;
}

Tensor Trainer::Session::predict(const Tensor& features, std::int64_t batch_size) {
  const Shape& shape = features.shape();
  check_prediction(trainable_.feature_shape(), shape, batch_size);
  join();
  Tensor outputs(trainable_.output_shape().with_batch(shape[0]));
  const auto feature_count = static_cast<std::size_t>(trainable_.feature_shape().element_count());
  const auto output_count = static_cast<std::size_t>(trainable_.output_shape().element_count());
  for (std::int64_t first = 0; first < shape[0]; first += batch_size) {
    const std::int64_t samples = std::min(batch_size, shape[0] - first);
    const auto begin = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(samples);
    trainable_.predict({.seed = place_->seed,
                        .step = state_.step,
                        .first_sample = first,
                        .samples = samples,
                        .batch_samples = samples,
                        .features = features.values().subspan(begin * feature_count, count * feature_count),
                        .targets = {}},
                       outputs.values().subspan(begin * output_count, count * output_count));
  }
  return outputs;
}

std::int64_t Trainer::Session::step() {
  join();
  return state_.step;
}

Digest Trainer::Session::weights_digest() {
  join();
  std::vector<std::span<const float>> arrays;
  for (const StateSpan& span : trainable_.state()) {
    if (span.kind == StateKind::parameter) arrays.push_back(span.values);
  }
  return trainable_.memory().digest_of(arrays);
}

Digest Trainer::Session::save(const std::string& path) {
  join();
  return write_savepoint(*place_->file_system, path, view_of(state_, trainable_), {.threads = place_->saving_threads});
}

}  // namespace holdfast
