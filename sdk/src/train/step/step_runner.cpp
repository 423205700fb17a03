// What the phases of a step do, and what a generation needs for its steps. The order of the phases is in step.h alone,
// and what surrounds them in step_faults.cpp and checked_step.cpp, so that this is arithmetic. docs/decisions/sums.md

#include "train/step/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "collective/device_communicator.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// As many slots as a rank may ever need: it may have to compute all shards, with as many workers as it can have.
int slots_of_every_generation(const Replica::Context& context, int shards) {
  return ShardAccumulator::slots_needed(shards, std::min(context.shards, context.most_workers));
}

int slots_of_this_generation(const Replica::Context& context, const ShardAssignment& assignment) {
  return ShardAccumulator::slots_needed(assignment.most(), shard_workers(context));
}

// The places of a device's communicator stay as they are for a generation, also where fewer gradients are computed.
BlockLayout layout_of(Trainable& trainable) {
  const std::size_t places = trainable.memory().is_host() ? 0 : trainable.most_gradients();
  return BlockLayout(trainable.gradient_count(), trainable.sum_names().size(), places);
}

// Ranks connect before they know the state, and with it which gradients there are.
BlockLayout largest_layout_of(const Trainable& trainable) {
  return BlockLayout(trainable.most_gradients(), trainable.sum_names().size());
}

// Gradients on a device are not shared with other processes of the host.
CommunicatorShape shape_of(const Replica::Context& context, Trainable& trainable, const BlockLayout& layout,
                           const ShardAssignment& assignment) {
  const std::size_t shared_gradients = trainable.memory().is_host() ? layout.gradient_floats() : 0;
  return {.rank = context.rank,
          .size = context.size,
          .assignment = assignment,
          .slots = slots_of_every_generation(context, assignment.shards()),
          .float_count = shared_gradients + layout.tail_floats(),
          .tail_floats = layout.tail_floats(),
          .is_second = assignment.shards() != context.shards};
}

std::int64_t samples_of(std::span<const ShardSlice> shards) {
  return std::accumulate(shards.begin(), shards.end(), std::int64_t{0},
                         [](std::int64_t sum, const ShardSlice& shard) { return sum + shard.samples; });
}

}  // namespace

void StepRunner::prepare_memory(Replica::Context& context, Trainable& trainable) {
  const ShardAssignment assignment = context.assignment();
  CommunicatorShape shape = shape_of(context, trainable, layout_of(trainable), assignment);
  // The pages of the slots that the first generation uses are touched.
  shape.most_floats = shape_of(context, trainable, largest_layout_of(trainable), assignment).float_count;
  context.meeting->prepare(shape, slots_of_this_generation(context, assignment));
}

StepRunner::StepRunner(Replica::Context& context, Trainable& trainable)
    : context_(context),
      trainable_(trainable),
      layout_(largest_layout_of(trainable)),
      shards_(connect(context.assignment())) {}

// With the layout that is in use, which is the largest one before the state is known.
StepShards StepRunner::connect(const ShardAssignment& assignment) {
  std::unique_ptr<Communicator> communicator =
      context_.meeting->connect(shape_of(context_, trainable_, layout_, assignment));
  // The host's communicator stays underneath: it alone knows whether the generation lives.
  if (!trainable_.memory().is_host()) {
    communicator = make_device_communicator(
        std::move(communicator), trainable_.memory(),
        {.assignment = assignment,
         .hosts = context_.hosts,
         .host = context_.host,
         .slots = slots_of_this_generation(context_, assignment),
         .gradient_floats = layout_.gradient_floats(),
         .tail_floats = layout_.tail_floats(),
         .library_order = context_.reduction == Reduction::fastest,
         // To let go of NCCL takes seconds, which the watchdog must not take for a hang.
         .leaving = [supervision = context_.supervision] { supervision->regroup(); },
         .connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(context_.collective_timeout)});
  }
  StepShards shards{.assignment = assignment, .communicator = std::move(communicator), .computation = {}};
  compute_with(shards);
  return shards;
}

void StepRunner::compute_with(StepShards& shards) {
  shards.computation =
      std::make_unique<ShardComputation>(context_, trainable_, *shards.communicator, layout_, shards.assignment);
}

void StepRunner::use_layout() {
  const BlockLayout layout = layout_of(trainable_);
  const bool is_in_use =
      layout.gradient_count() == layout_.gradient_count() && layout.gradient_floats() == layout_.gradient_floats();
  // Frozen layers may have changed since the last call. New shards would be made for nothing if they have not.
  if (is_in_use) return;
  layout_ = layout;
  shards_.communicator->set_gradient_floats(layout_.gradient_floats());
  compute_with(shards_);
  // All ranks connect anew in the next step that needs it.
  second_.reset();
}

ShardAssignment StepRunner::assignment_of_step(const Replica::Context& context, int shards_together) {
  return context.assignment().with_parts(shards_together / ShardTree::parts_of_a_node(context.shards, shards_together));
}

StepShards& StepRunner::shards_of_step(int shards_together, std::int64_t step) {
  const ShardAssignment assignment = assignment_of_step(context_, shards_together);
  if (assignment == shards_.assignment) return shards_;
  if (!second_ || second_->assignment != assignment) {
    second_.reset();
    context_.supervision->enter(TrainingPhase::waiting_for_peers, step);
    second_ = connect(assignment);
  }
  return *second_;
}

StepArithmetic::StepArithmetic(StepRunner& runner, const Batch& batch, std::int64_t step,
                               const StepRunner::TrainOptions& options)
    : runner_(runner),
      batch_(batch),
      step_(step),
      options_(options),
      shards_together_(ShardTree::parts_of_a_node(runner.context_.shards, options.shards_together)),
      shards_(runner.shards_of_step(options.shards_together, step)),
      divisor_count_(runner.trainable_.divisor_count(batch.target_layout(), batch.has_weights())) {
  if (divisor_count_ > runner_.layout_.tail_floats()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the batches are divided by {} numbers (divisor_count()); a Trainable with {} sums may "
                            "have {}",
                            divisor_count_, runner_.trainable_.sum_names().size(), runner_.layout_.tail_floats()));
  }
  // Divisors of the step before must not divide this one, which may have none.
  runner_.divisors_.clear();
  shards_.computation->set_divisors({});
}

WatchedStep StepArithmetic::watched() {
  return WatchedStep(*this, *runner_.context_.supervision, shards_.computation->faulty(), step_,
                     samples_of(batch_.shards));
}

void StepArithmetic::sum_divisors() {
  shards_.computation->sum_divisors(batch_, step_, shards_together_, divisor_count_);
}

void StepArithmetic::share_divisors() {
  const BlockLayout& layout = runner_.layout_;
  const FloatRange tail{.begin = layout.gradient_floats(), .end = layout.block_floats()};
  const Sums sums = shards_.communicator->reduce(shards_.computation->covering_slots(), tail, runner_.deadline());
  runner_.divisors_.assign(sums.tail.begin(), sums.tail.begin() + static_cast<std::ptrdiff_t>(divisor_count_));
  shards_.computation->set_divisors(runner_.divisors_);
}

void StepArithmetic::forward_and_backward() {
  shards_.computation->compute(batch_, step_,
                               {.asks_comparison = options_.asks_comparison,
                                .asks_end = options_.asks_end,
                                .shards_together = shards_together_,
                                .check = check_});
}

// Where this rank is alone and has looked for NaN, its sum is the sum, so only the tail is reduced.
StepSum StepArithmetic::sum_over_ranks() {
  const BlockLayout& layout = runner_.layout_;
  Communicator& communicator = *shards_.communicator;
  const std::vector<int> slots = shards_.computation->covering_slots();
  const std::optional<bool> is_lone_finite = shards_.computation->lone_sum_is_finite();
  // The gradients are complete and checked where they lie. To copy and check them would be a pass over all of them.
  const std::size_t begin = is_lone_finite ? layout.gradient_floats() : 0;
  StepSum sum{.block = communicator.reduce(slots, {.begin = begin, .end = layout.block_floats()}, runner_.deadline())};
  sum.is_finite = communicator.was_finite() && is_lone_finite.value_or(true);
  if (is_lone_finite) sum.block.gradients = communicator.slots()[static_cast<std::size_t>(slots.front())].gradients;
  return sum;
}

StepOutcome StepArithmetic::agree(StepSum& sum) {
  StepOutcome outcome = runner_.outcome_of(sum);
  // Before the update, whose loss it belongs to.
  runner_.add_penalty(batch_, outcome);
  outcome.is_to_apply = sum.is_finite || options_.applies_what_is_not_finite;
  if (!outcome.is_to_apply) outcome.not_finite = runner_.describe_not_finite(sum.block);
  return outcome;
}

void StepArithmetic::update(const StepSum& sum) {
  const std::vector<float>& divisors = runner_.divisors_;
  const BlockLayout& layout = runner_.layout_;
  // Shards divide by divisors of their own. Where nothing is left to divide by, nothing is applied.
  const bool are_divided = !divisors.empty();
  const bool has_nothing = are_divided && divisors.front() == 0;
  shards_.computation->faulty().apply_update({.step = step_ + 1,
                                              .batch_samples = batch_.samples,
                                              .gradients = sum.block.gradients.first(layout.gradient_count()),
                                              .is_weighted = are_divided ? has_nothing : batch_.has_weights(),
                                              .weight = are_divided ? 0 : layout.weighted_sums(sum.block.tail).back(),
                                              .learning_rate = options_.learning_rate,
                                              .passes = shards_.computation->passes()});
}

// Two broadcasts, since the other ranks must know the length first.
std::string StepRunner::share_text(std::string text, int root) {
  const bool takes = root != context_.rank;
  std::uint64_t bytes = text.size();
  communicator().broadcast(std::as_writable_bytes(std::span(&bytes, 1)), root, takes, deadline());
  text.resize(bytes);
  communicator().broadcast(std::as_writable_bytes(std::span(text)), root, takes, deadline());
  return text;
}

std::string StepRunner::share_first_text(std::string own) {
  // Each rank learns which ones have a text, so all of them take the same root.
  const std::uint8_t has_text = own.empty() ? 0 : 1;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(context_.size));
  communicator().gather_all(std::as_bytes(std::span(&has_text, 1)), std::as_writable_bytes(std::span(all)), deadline());
  const auto first = std::ranges::find(all, 1);
  return first == all.end() ? std::string() : share_text(std::move(own), static_cast<int>(first - all.begin()));
}

StepRunner::Outcome StepRunner::outcome_of(const StepSum& sum) const {
  const std::span<const float> sums = layout_.sums(sum.block.tail);
  return {.sums = std::vector<double>(sums.begin(), sums.end()),
          .weight = static_cast<double>(layout_.weighted_sums(sum.block.tail).back()),
          .divisors = std::vector<double>(divisors_.begin(), divisors_.end()),
          .requests = layout_.requests(sum.block.tail)};
}

StepRunner::Outcome StepRunner::evaluate(const Batch& batch, std::int64_t step) {
  const TrainOptions options;
  StepArithmetic arithmetic(*this, batch, step, options);
  WatchedStep watched = arithmetic.watched();
  find_divisors(watched);
  context_.profile.enter(StepProfile::kFit, to_string(TrainingPhase::evaluating));
  shards_.computation->compute_sums(batch, step);
  context_.supervision->enter(TrainingPhase::waiting_for_peers, step);
  // No gradients are computed here, so only the tail of the block is added up.
  const FloatRange tail{.begin = layout_.gradient_floats(), .end = layout_.block_floats()};
  Outcome outcome =
      outcome_of({.block = communicator().reduce(shards_.computation->covering_slots(), tail, deadline())});
  add_penalty(batch, outcome);
  return outcome;
}

// Sums become means by a division later, so the penalty is multiplied here. It is added to the first sum, the loss.
void StepRunner::add_penalty(const Batch& batch, Outcome& outcome) const {
  const double penalty = trainable_.penalty();
  if (penalty == 0 || outcome.sums.empty()) return;
  if (!outcome.divisors.empty()) {
    outcome.sums.front() += penalty * outcome.divisors.front();
    return;
  }
  outcome.sums.front() += penalty * (batch.has_weights() ? outcome.weight : static_cast<double>(batch.samples));
}

// Ranks have consecutive shards, so the outputs of a rank are one piece.
void StepRunner::predict(const Batch& batch, std::int64_t step, std::span<float> outputs) {
  const ShardAssignment assignment = context_.assignment();
  const std::size_t floats = floats_of_outputs(trainable_);
  const auto piece_of = [&](int rank) {
    const ShardRange of_rank = assignment.of(rank);
    const std::int64_t begin = begin_of_shard(batch.samples, of_rank.begin, context_.shards);
    const std::int64_t end = begin_of_shard(batch.samples, of_rank.end, context_.shards);
    return outputs.subspan(static_cast<std::size_t>(begin) * floats, static_cast<std::size_t>(end - begin) * floats);
  };
  shards_.computation->predict(batch, step, piece_of(context_.rank));
  context_.supervision->enter(TrainingPhase::waiting_for_peers, step);
  // Each rank gives its piece to all others, so every one returns all outputs.
  for (int rank = 0; rank < context_.size; ++rank) {
    communicator().broadcast(std::as_writable_bytes(piece_of(rank)), rank, rank != context_.rank, deadline());
  }
}

// The sign of a NaN is chance, and differs between devices.
static std::string number_text(float value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string StepRunner::describe_not_finite(const Sums& reduced) const {
  const std::vector<std::string> names = trainable_.sum_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!std::isfinite(reduced.tail[i])) return fmt::format("{} is {}", names[i], number_text(reduced.tail[i]));
  }
  // Copied whole, as this is done once for a step that is not applied.
  std::vector<float> gradients(layout_.gradient_count());
  trainable_.memory().copy_to_host(reduced.gradients.first(gradients.size()), gradients);
  const auto found =
      std::find_if(gradients.begin(), gradients.end(), [](float value) { return !std::isfinite(value); });
  if (found == gradients.end()) return "a sum over shards is not finite";
  return fmt::format("gradient {} of {} is {}", found - gradients.begin(), gradients.size(), number_text(*found));
}

}  // namespace holdfast
