#include "train/step_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kStopVote = 0;
constexpr std::size_t kRegroupVote = 1;
constexpr std::size_t kComparisonVote = 2;
constexpr std::size_t kSavepointVote = 3;
constexpr std::size_t kVotes = 4;

std::size_t round_up_to_line(std::size_t floats) {
  return (floats + 15) / 16 * 16;
}

// As many as a rank may ever need: one that computes all shards, with as many workers as it can have.
int slots_of_every_generation(const Replica::Place& place) {
  return ShardAccumulator::slots_needed(place.shards, std::min(place.shards, place.most_workers));
}

std::int64_t samples_of(std::span<const ShardSlice> shards) {
  return std::accumulate(shards.begin(), shards.end(), std::int64_t{0},
                         [](std::int64_t sum, const ShardSlice& shard) { return sum + shard.samples; });
}

}  // namespace

int StepRunner::workers_of(const Replica::Place& place) {
  return std::min(place.deal().most(), place.workers);
}

StepRunner::StepRunner(Replica::Place& place, Trainable& trainable)
    : place_(place), trainable_(trainable), local_(place.deal().of(place.rank)), workers_(workers_of(place)) {
  sum_count_ = trainable_.sum_names().size();
  sums_begin_ = round_up_to_line(trainable_.gradient_count());
  block_floats_ = round_up_to_line(sums_begin_ + sum_count_ + kVotes);
  communicator_ = place.connect({.rank = place.rank,
                                 .size = place.size,
                                 .deal = place.deal(),
                                 .slots = slots_of_every_generation(place),
                                 .float_count = block_floats_});
  accumulator_ = std::make_unique<ShardAccumulator>(ShardTree(place.shards), local_, communicator_->slots());
}

StepRunner::Outcome StepRunner::train(const Batch& batch, std::int64_t step, const TrainOptions& options) {
  requests_comparison_ = options.requests_comparison;
  Supervision& supervision = *place_.supervision;
  supervision.enter(TrainingPhase::computing, step);
  reach_with_state(FaultPoint::forward, step);
  compute_at_pace(batch, step);

  supervision.enter(TrainingPhase::waiting_for_peers, step);
  supervision.reach(FaultPoint::reduce, step);
  const std::span<const float> reduced =
      communicator_->reduce(accumulator_->covering_slots(), {.begin = 0, .end = block_floats_}, deadline());

  if (!communicator_->was_finite() && !options.applies_what_is_not_finite) {
    Outcome outcome = outcome_of(reduced);
    outcome.not_finite = describe_not_finite(reduced);
    return outcome;
  }

  supervision.enter(TrainingPhase::updating, step);
  supervision.reach(FaultPoint::before_update, step);
  std::span<const float> gradients = reduced.first(trainable_.gradient_count());
  // In a copy: the reduced sums lie in memory that peers read.
  std::vector<float> changed;
  supervision.corrupt(FaultPoint::before_update, step, [&](FaultTarget target) {
    if (target != FaultTarget::gradient) return floats_of(target);
    if (changed.empty()) changed.assign(gradients.begin(), gradients.end());
    gradients = changed;
    return std::vector<std::span<float>>{changed};
  });
  trainable_.apply_update({.step = step + 1, .batch_samples = batch.samples, .gradients = gradients});
  supervision.count_samples(samples_of(batch.shards));
  return outcome_of(reduced);
}

std::string StepRunner::describe_not_finite(std::span<const float> reduced) const {
  const std::vector<std::string> names = trainable_.sum_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!std::isfinite(reduced[sums_begin_ + i])) return names[i] + " is " + std::to_string(reduced[sums_begin_ + i]);
  }
  const std::span<const float> gradients = reduced.first(trainable_.gradient_count());
  const auto found =
      std::find_if(gradients.begin(), gradients.end(), [](float value) { return !std::isfinite(value); });
  if (found == gradients.end()) return "a sum over shards is not finite";
  return "gradient " + std::to_string(found - gradients.begin()) + " of " + std::to_string(gradients.size()) + " is " +
         std::to_string(*found);
}

std::vector<std::span<float>> StepRunner::floats_of(FaultTarget target) {
  const StateKind kind = target == FaultTarget::slot ? StateKind::optimizer_slot : StateKind::parameter;
  std::vector<std::span<float>> floats;
  for (const StateSpan& span : trainable_.state()) {
    if (span.kind == kind) floats.push_back(span.values);
  }
  return floats;
}

void StepRunner::reach_with_state(FaultPoint point, std::int64_t step) {
  place_.supervision->reach(point, step);
  place_.supervision->corrupt(point, step, [this](FaultTarget target) { return floats_of(target); });
}

// An injected fault may make this replica a slow one.
void StepRunner::compute_at_pace(const Batch& batch, std::int64_t step) {
  const auto begin = std::chrono::steady_clock::now();
  compute_shards(batch, step, Mode::train);
  const double factor = place_.supervision->slowdown(step);
  if (factor > 1) std::this_thread::sleep_for((std::chrono::steady_clock::now() - begin) * (factor - 1));
}

StepRunner::Outcome StepRunner::evaluate(const Batch& batch, std::int64_t step) {
  place_.supervision->enter(TrainingPhase::evaluating, step);
  compute_shards(batch, step, Mode::evaluate);
  place_.supervision->enter(TrainingPhase::waiting_for_peers, step);
  return outcome_of(
      communicator_->reduce(accumulator_->covering_slots(), {.begin = sums_begin_, .end = block_floats_}, deadline()));
}

void StepRunner::compute_shards(const Batch& batch, std::int64_t step, Mode mode) {
  HOLDFAST_ASSERT(static_cast<int>(batch.shards.size()) == local_.count());
  accumulator_->reset();
  workers_.run(local_.count(), [&](int worker, int index) { compute_shard(batch, step, mode, worker, index); });
}

void StepRunner::compute_shard(const Batch& batch, std::int64_t step, Mode mode, int worker, int index) {
  const ShardSlice& slice = batch.shards[static_cast<std::size_t>(index)];
  const ShardBatch shard{.worker = worker,
                         .seed = place_.seed,
                         .step = step,
                         .first_sample = slice.first_sample,
                         .samples = slice.samples,
                         .batch_samples = batch.samples,
                         .features = slice.features,
                         .targets = slice.targets,
                         .check_cancelled = [this] { check_cancelled(); }};
  const std::span<float> slot = accumulator_->acquire(local_.begin + index);
  std::fill(slot.begin() + static_cast<std::ptrdiff_t>(sums_begin_), slot.end(), 0.0F);
  const std::span<float> sums = slot.subspan(sums_begin_, sum_count_);
  if (mode == Mode::train) {
    const std::size_t gradient_count = trainable_.gradient_count();
    GradientSink sink(slot.first(gradient_count));
    trainable_.compute_gradients(shard, sink, sums);
    if (sink.ready_count() != gradient_count) {
      throw Error(ErrorCode::invalid_argument, "compute_gradients() declared " + std::to_string(sink.ready_count()) +
                                                   " of " + std::to_string(gradient_count) +
                                                   " floats ready; each must be, once");
    }
    place_.supervision->reach(FaultPoint::backward, step);
    place_.supervision->corrupt(FaultPoint::backward, step, [&](FaultTarget target) {
      return std::vector<std::span<float>>{target == FaultTarget::loss ? sums.first(1) : slot.first(gradient_count)};
    });
    std::fill(slot.begin() + static_cast<std::ptrdiff_t>(gradient_count),
              slot.begin() + static_cast<std::ptrdiff_t>(sums_begin_), 0.0F);
  } else {
    trainable_.compute_sums(shard, sums);
  }
  if (index == 0) vote(slot);
  accumulator_->complete(local_.begin + index, {.begin = mode == Mode::train ? 0 : sums_begin_, .end = block_floats_});
}

// The shard will be computed again, with the state as it is: waiting for its end would hold the others up.
void StepRunner::check_cancelled() const {
  if (communicator_->is_cancelled()) throw GenerationEnded("the generation was ended while a shard was computed");
}

// One vote a rank: with its first shard.
void StepRunner::vote(std::span<float> slot) const {
  const std::span<float> votes = slot.subspan(sums_begin_ + sum_count_, kVotes);
  if (place_.supervision->is_stop_requested()) votes[kStopVote] = 1.0F;
  if (place_.supervision->is_regroup_requested()) votes[kRegroupVote] = 1.0F;
  if (requests_comparison_) votes[kComparisonVote] = 1.0F;
  // Of the rank that writes alone: the others may hear of it after it is done.
  if (place_.rank == 0 && place_.supervision->is_savepoint_requested()) votes[kSavepointVote] = 1.0F;
}

StepRunner::Outcome StepRunner::outcome_of(std::span<const float> reduced) const {
  const std::span<const float> sums = reduced.subspan(sums_begin_, sum_count_);
  const std::span<const float> votes = reduced.subspan(sums_begin_ + sum_count_, kVotes);
  return {.sums = std::vector<double>(sums.begin(), sums.end()),
          .is_stop_requested = votes[kStopVote] > 0.0F,
          .is_regroup_requested = votes[kRegroupVote] > 0.0F,
          .is_savepoint_requested = votes[kSavepointVote] > 0.0F,
          .is_comparison_requested = votes[kComparisonVote] > 0.0F};
}

}  // namespace holdfast
