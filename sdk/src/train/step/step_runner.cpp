#include "train/step/step_runner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <list>
#include <numeric>
#include <thread>

#include "collective/device_communicator.h"
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

MemoryCommunicatorShape StepRunner::shape_of(const Replica::Place& place, Trainable& trainable) {
  const std::size_t tail = round_up_to_line(trainable.sum_names().size() + kVotes + kCheckFloats);
  // What lies on a device is not shared with other processes.
  const std::size_t gradients =
      trainable.memory().is_host() ? round_up_to_line(std::max<std::size_t>(trainable.gradient_count(), 1)) : 0;
  return {.rank = place.rank,
          .size = place.size,
          .deal = place.deal(),
          .slots = slots_of_every_generation(place),
          .float_count = gradients + tail,
          .tail_floats = tail};
}

void StepRunner::prepare_memory(Replica::Place& place, Trainable& trainable) {
  const MemoryCommunicatorShape shape = shape_of(place, trainable);
  place.blocks = std::make_shared<SharedMemory>(SharedMemory::create("holdfast-blocks", shape.blocks_bytes()));
  shape.touch(place.blocks->writable(), ShardAccumulator::slots_needed(shape.deal.most(), workers_of(place)));
}

StepRunner::StepRunner(Replica::Place& place, Trainable& trainable)
    : place_(place), trainable_(trainable), local_(place.deal().of(place.rank)), workers_(workers_of(place)) {
  sum_count_ = trainable_.sum_names().size();
  // There may be none; devices add some all the same.
  gradient_floats_ = round_up_to_line(std::max<std::size_t>(trainable_.gradient_count(), 1));
  const MemoryCommunicatorShape shape = shape_of(place, trainable);
  block_floats_ = gradient_floats_ + shape.tail_floats;
  communicator_ = place.connect(shape);
  if (!memory().is_host()) {
    const int slots = ShardAccumulator::slots_needed(shape.deal.most(), workers_of(place));
    communicator_ = make_device_communicator(
        std::move(communicator_), memory(),
        {.deal = shape.deal,
         .slots = slots,
         .gradient_floats = gradient_floats_,
         .tail_floats = shape.tail_floats,
         .in_the_librarys_order = place.reduction == Reduction::fastest,
         .leaving = [supervision = place.supervision] { supervision->regroup(); },
         .connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(place.collective_timeout)});
  }
  accumulator_ = std::make_unique<ShardAccumulator>(ShardTree(place.shards), local_, communicator_->slots(), memory());
}

StepRunner::Outcome StepRunner::train(const Batch& batch, std::int64_t step, const TrainOptions& options) {
  requests_comparison_ = options.requests_comparison;
  check_.reset();
  if (options.checked_shards > 0) return train_checked(batch, step, options);
  return apply(sum_over_shards(batch, step), batch, step, options);
}

StepRunner::Sum StepRunner::sum_over_shards(const Batch& batch, std::int64_t step) {
  Supervision& supervision = *place_.supervision;
  supervision.enter(TrainingPhase::computing, step);
  reach_with_state(FaultPoint::forward, step);
  compute_at_pace(batch, step);

  supervision.enter(TrainingPhase::waiting_for_peers, step);
  supervision.reach(FaultPoint::reduce, step);
  const std::vector<int> slots = accumulator_->covering_slots();
  if (check_) {
    const Slot slot = communicator_->slots()[static_cast<std::size_t>(slots.front())];
    add_to_sum(report_of(*check_), check_->recomputations, slot.tail.subspan(sum_count_ + kVotes, kCheckFloats));
  }
  return reduce(slots);
}

// The one shard of a device that trains alone.
bool StepRunner::is_lone_shard() const {
  return place_.size == 1 && local_.count() == 1 && !memory().is_host();
}

// It is the sum itself, and has been looked at.
StepRunner::Sum StepRunner::reduce(std::span<const int> slots) {
  const bool is_looked_at = is_lone_shard() && lone_shard_is_finite_.has_value();
  const std::size_t begin = is_looked_at ? gradient_floats_ : 0;
  Sum sum{.block = communicator_->reduce(slots, {.begin = begin, .end = block_floats_}, deadline())};
  sum.is_finite = communicator_->was_finite();
  if (!is_looked_at) return sum;
  sum.block.gradients = communicator_->slots()[static_cast<std::size_t>(slots.front())].gradients;
  sum.is_finite = sum.is_finite && *lone_shard_is_finite_;
  return sum;
}

StepRunner::Outcome StepRunner::apply(const Sum& sum, const Batch& batch, std::int64_t step,
                                      const TrainOptions& options) {
  Supervision& supervision = *place_.supervision;
  Outcome outcome = outcome_of(sum.block);
  if (!sum.is_finite && !options.applies_what_is_not_finite) {
    outcome.not_finite = describe_not_finite(sum.block);
    return outcome;
  }

  supervision.enter(TrainingPhase::updating, step);
  supervision.reach(FaultPoint::before_update, step);
  std::span<const float> gradients = sum.block.gradients.first(trainable_.gradient_count());
  // In a copy: the reduced sums lie in memory that peers read.
  std::shared_ptr<float[]> changed;
  corrupt(FaultPoint::before_update, step, [&](FaultTarget target) {
    if (target != FaultTarget::gradient) return Floats{.in_memory = floats_of(target)};
    const std::size_t count = gradients.size();
    if (!changed) {
      changed = memory().allocate(count);
      memory().copy(gradients, {changed.get(), count});
    }
    gradients = {changed.get(), count};
    return Floats{.in_memory = {{changed.get(), count}}};
  });
  trainable_.apply_update({.step = step + 1, .batch_samples = batch.samples, .gradients = gradients});
  supervision.count_samples(samples_of(batch.shards));
  return outcome;
}

StepRunner::Outcome StepRunner::train_checked(const Batch& batch, std::int64_t step, const TrainOptions& options) {
  check_ = prepare_check(&batch, step, options);
  const Sum reduced = sum_over_shards(batch, step);
  if (is_agreed(check_floats(reduced.block.tail))) {
    check_.reset();
    return apply(reduced, batch, step, options);
  }
  // Votes are not lost: who voted does so again.
  return train_again(gather_reports(), step, options);
}

// With samples that are read anew: those may be what is wrong. Nothing is applied unless all agree, and everybody knows
// what the others computed by then.
StepRunner::Outcome StepRunner::train_again(const std::vector<CheckReport>& first, std::int64_t step,
                                            const TrainOptions& options) {
  check_ = prepare_check(nullptr, step, options);
  const LoadedShards loaded = options.load(local_);
  const auto [reduced, is_finite] = sum_over_shards(loaded.batch(), step);
  // The exchange of reports takes the memory of the sum.
  const std::shared_ptr<float[]> gradients = memory().allocate(gradient_floats_);
  memory().copy(reduced.gradients, {gradients.get(), gradient_floats_});
  const std::vector<float> tail(reduced.tail.begin(), reduced.tail.end());
  const Sums block{.gradients = {gradients.get(), gradient_floats_}, .tail = tail};
  const int size = place_.size;
  const std::vector<CheckReport> again = gather_reports();
  check_.reset();
  const CheckVerdict verdict = judge(first, again);
  Outcome outcome = verdict.kind == CheckVerdict::Kind::agreed
                        ? apply({.block = block, .is_finite = is_finite}, loaded.batch(), step, options)
                        : outcome_of(block);
  outcome.check = verdict;
  outcome.check_reports =
      "first " + describe(first, recomputations(false, size)) + "; then " + describe(again, recomputations(true, size));
  return outcome;
}

std::vector<int> StepRunner::drawn_shards_of(int rank, std::int64_t step, int count) const {
  return drawn_shards(place_.seed, step, place_.deal().of(rank), count);
}

StepRunner::Check StepRunner::prepare_check(const Batch* own, std::int64_t step, const TrainOptions& options) const {
  const bool is_repeated = own == nullptr;
  place_.supervision->enter(TrainingPhase::reading_data, step);
  const auto drawn = [&](int rank) { return drawn_shards_of(rank, step, options.checked_shards); };
  Check check{.recomputations = recomputations(is_repeated, place_.size),
              .own = drawn(place_.rank),
              .own_digests = std::vector<Digest>(static_cast<std::size_t>(local_.count())),
              .others = {}};
  for (int distance = 1; distance <= check.recomputations; ++distance) {
    const int rank = rank_before(place_.rank, distance, place_.size);
    for (const int shard : drawn(rank)) {
      // A lone replica has its own at hand. Loading those that went to a device as they are, and sending them once
      // more, takes as long as many steps, and nothing has computed them.
      if (rank == place_.rank && own != nullptr && own->is_on_device) {
        check.others.push_back({.distance = distance, .index = static_cast<std::size_t>(shard - local_.begin)});
      } else {
        check.others.push_back({.distance = distance, .samples = options.load({shard, shard + 1})});
      }
    }
  }
  return check;
}

CheckReport StepRunner::report_of(const Check& check) const {
  const auto combined = [](const auto& digests) { return digest(std::as_bytes(std::span(digests))); };
  CheckReport report;
  std::vector<Digest> own;
  for (const int shard : check.own) own.push_back(check.own_digests[static_cast<std::size_t>(shard - local_.begin)]);
  report.own = combined(own);
  for (int distance = 1; distance <= check.recomputations; ++distance) {
    std::vector<Digest> of_before;
    for (const Recomputation& other : check.others) {
      if (other.distance == distance) of_before.push_back(other.digest);
    }
    report.of_before[static_cast<std::size_t>(distance - 1)] = combined(of_before);
  }
  return report;
}

// Overwrites the reduced sums. One digest a call: slots may be as small as that.
std::vector<CheckReport> StepRunner::gather_reports() {
  const CheckReport own = report_of(*check_);
  std::vector<CheckReport> reports(static_cast<std::size_t>(place_.size));
  const auto gather = [&](const Digest& digest, const auto& place_in) {
    std::vector<Digest> all(reports.size());
    communicator_->gather_all(std::as_bytes(std::span(&digest, 1)), std::as_writable_bytes(std::span(all)), deadline());
    for (std::size_t rank = 0; rank < all.size(); ++rank) place_in(reports[rank]) = all[rank];
  };
  gather(own.own, [](CheckReport& report) -> Digest& { return report.own; });
  for (std::size_t i = 0; i < own.of_before.size(); ++i) {
    gather(own.of_before[i], [i](CheckReport& report) -> Digest& { return report.of_before[i]; });
  }
  return reports;
}

std::span<const float> StepRunner::check_floats(std::span<const float> tail) const {
  return tail.subspan(sum_count_ + kVotes, kCheckFloats);
}

std::string StepRunner::describe_not_finite(const Sums& reduced) const {
  const std::vector<std::string> names = trainable_.sum_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!std::isfinite(reduced.tail[i])) return names[i] + " is " + std::to_string(reduced.tail[i]);
  }
  std::vector<float> gradients(trainable_.gradient_count());
  memory().copy_to_host(reduced.gradients.first(gradients.size()), gradients);
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
  corrupt(point, step, [this](FaultTarget target) { return Floats{.in_memory = floats_of(target)}; });
}

// What lies on a device is changed in a copy on the host.
bool StepRunner::corrupt(FaultPoint point, std::int64_t step, const std::function<Floats(FaultTarget)>& floats_of) {
  struct Copy {
    std::span<float> original;
    std::vector<float> values;
  };
  std::list<Copy> copies;
  bool is_changed = false;
  place_.supervision->corrupt(point, step, [&](FaultTarget target) {
    is_changed = true;
    Floats floats = floats_of(target);
    for (const std::span<float> array : floats.in_memory) {
      if (memory().is_host()) {
        floats.on_host.push_back(array);
        continue;
      }
      Copy& copy = copies.emplace_back(Copy{.original = array, .values = std::vector<float>(array.size())});
      memory().copy_to_host(array, copy.values);
      floats.on_host.emplace_back(copy.values);
    }
    return floats.on_host;
  });
  for (const Copy& copy : copies) memory().copy_from_host(copy.values, copy.original);
  return is_changed;
}

// An injected fault may make this replica a slow one.
void StepRunner::compute_at_pace(const Batch& batch, std::int64_t step) {
  const auto begin = std::chrono::steady_clock::now();
  compute_shards(batch, step, Mode::train);
  const double factor = place_.supervision->slowdown(step);
  if (factor > 1) std::this_thread::sleep_for((std::chrono::steady_clock::now() - begin) * (factor - 1));
}

StepRunner::Outcome StepRunner::evaluate(const Batch& batch, std::int64_t step) {
  check_.reset();
  place_.supervision->enter(TrainingPhase::evaluating, step);
  compute_shards(batch, step, Mode::evaluate);
  place_.supervision->enter(TrainingPhase::waiting_for_peers, step);
  return outcome_of(communicator_->reduce(accumulator_->covering_slots(),
                                          {.begin = gradient_floats_, .end = block_floats_}, deadline()));
}

void StepRunner::compute_shards(const Batch& batch, std::int64_t step, Mode mode) {
  HOLDFAST_ASSERT(static_cast<int>(batch.shards.size()) == local_.count());
  accumulator_->reset();
  const int others = check_ ? static_cast<int>(check_->others.size()) : 0;
  workers_.run(local_.count() + others, [&](int worker, int index) {
    if (index < local_.count()) return compute_shard(batch, step, mode, worker, index);
    recompute_shard(batch, check_->others[static_cast<std::size_t>(index - local_.count())], step, worker);
  });
}

ShardBatch StepRunner::shard_batch(const Batch& batch, std::size_t index, std::int64_t step, int worker) const {
  const ShardSlice& slice = batch.shards[index];
  return {.worker = worker,
          .seed = place_.seed,
          .step = step,
          .first_sample = slice.first_sample,
          .samples = slice.samples,
          .batch_samples = batch.samples,
          .features = slice.features,
          .targets = slice.targets,
          .is_on_device = batch.is_on_device,
          .check_cancelled = [this] { check_cancelled(); }};
}

void StepRunner::compute_shard(const Batch& batch, std::int64_t step, Mode mode, int worker, int index) {
  const ShardBatch shard = shard_batch(batch, static_cast<std::size_t>(index), step, worker);
  const Slot slot = accumulator_->acquire(local_.begin + index);
  std::fill(slot.tail.begin(), slot.tail.end(), 0.0F);
  const std::span<float> sums = slot.tail.first(sum_count_);
  const bool is_ahead = mode == Mode::train && is_handed_over(index, step);
  if (mode == Mode::train) {
    std::optional<bool> is_finite =
        compute_block(shard, slot, is_ahead ? handing_over(index, step) : GradientSink::Wishes());
    place_.supervision->reach(FaultPoint::backward, step);
    if (corrupt_shard(slot, step)) is_finite.reset();
    if (is_lone_shard()) lone_shard_is_finite_ = is_finite;
    if (check_) check_->own_digests[static_cast<std::size_t>(index)] = digest_of(slot);
  } else {
    trainable_.compute_sums(shard, sums);
  }
  if (index == 0) vote(slot.tail);
  const bool has_gradients = mode == Mode::train && !is_ahead;
  accumulator_->complete(local_.begin + index, {.begin = has_gradients ? 0 : gradient_floats_, .end = block_floats_});
}

// The last shard of a device, where others wait for its gradients, and where nobody looks at them or changes them
// before they may be sent. On CPUs what adds is what computes. Ranks need not do alike.
bool StepRunner::is_handed_over(int index, std::int64_t step) const {
  return !memory().is_host() && place_.size > 1 && workers_.size() == 1 && index + 1 == local_.count() && !check_ &&
         trainable_.gradient_count() > 0 && !place_.supervision->may_corrupt(FaultPoint::backward, step);
}

GradientSink::Wishes StepRunner::handing_over(int index, std::int64_t step) {
  const auto hand_over = [this, index, step, missing = trainable_.gradient_count()](std::size_t begin,
                                                                                    std::size_t end) mutable {
    missing -= std::min(missing, end - begin);
    // The padding is complete, too.
    const FloatRange range{begin, end == trainable_.gradient_count() ? gradient_floats_ : end};
    const std::vector<int> slots = accumulator_->add_ahead(local_.begin + index, range);
    communicator_->hand_over(slots, range);
    if (missing > 0) return;
    place_.supervision->enter(TrainingPhase::waiting_for_peers, step);
    communicator_->begin_reduce(slots, deadline());
    place_.supervision->enter(TrainingPhase::computing, step);
  };
  return {.on_ready = hand_over, .least_floats = communicator_->piece_floats()};
}

bool StepRunner::corrupt_shard(const Slot& slot, std::int64_t step) {
  const std::span<float> gradients = slot.gradients.first(trainable_.gradient_count());
  return corrupt(FaultPoint::backward, step, [&](FaultTarget target) {
    return target == FaultTarget::loss ? Floats{.on_host = {slot.tail.first(1)}} : Floats{.in_memory = {gradients}};
  });
}

// The shard will be computed again, with the state as it is: waiting for its end would hold the others up.
void StepRunner::check_cancelled() const {
  if (communicator_->is_cancelled()) throw GenerationEnded("the generation was ended while a shard was computed");
}

// In memory of its own, as those of the owner aligned to a cache line, and freed at once: checks are rare.
void StepRunner::recompute_shard(const Batch& batch, Recomputation& recomputation, std::int64_t step, int worker) {
  const std::shared_ptr<float[]> gradients = memory().allocate(gradient_floats_);
  std::vector<float> sums(sum_count_);
  const Slot block{.gradients = {gradients.get(), gradient_floats_}, .tail = sums};
  const Batch& samples = recomputation.samples ? recomputation.samples->batch() : batch;
  compute_block(shard_batch(samples, recomputation.index, step, worker), block);
  recomputation.digest = digest_of(block);
}

// Gradients, padding and sums.
std::optional<bool> StepRunner::compute_block(const ShardBatch& shard, const Slot& block, GradientSink::Wishes wishes) {
  const std::size_t gradient_count = trainable_.gradient_count();
  memory().fill_zero(block.gradients.subspan(gradient_count));
  wishes.asks_if_finite = is_lone_shard();
  GradientSink sink(block.gradients.first(gradient_count), std::move(wishes));
  trainable_.compute_gradients(shard, sink, block.tail.first(sum_count_));
  if (sink.ready_count() != gradient_count) {
    throw Error(ErrorCode::invalid_argument, "compute_gradients() declared " + std::to_string(sink.ready_count()) +
                                                 " of " + std::to_string(gradient_count) +
                                                 " floats ready; each must be, once");
  }
  return sink.is_finite();
}

Digest StepRunner::digest_of(const Slot& block) const {
  const std::span<const float> gradients = block.gradients;
  const std::array<Digest, 2> parts{memory().digest_of(std::span(&gradients, 1)),
                                    digest(std::as_bytes(block.tail.first(sum_count_)))};
  return digest(std::as_bytes(std::span(parts)));
}

// One vote a rank: with its first shard.
void StepRunner::vote(std::span<float> tail) const {
  const std::span<float> votes = tail.subspan(sum_count_, kVotes);
  if (place_.supervision->is_stop_requested()) votes[kStopVote] = 1.0F;
  if (place_.supervision->is_regroup_requested()) votes[kRegroupVote] = 1.0F;
  if (requests_comparison_) votes[kComparisonVote] = 1.0F;
  // Of the rank that writes alone: the others may hear of it after it is done.
  if (place_.rank == 0 && place_.supervision->is_savepoint_requested()) votes[kSavepointVote] = 1.0F;
}

StepRunner::Outcome StepRunner::outcome_of(const Sums& reduced) const {
  const std::span<const float> sums = reduced.tail.first(sum_count_);
  const std::span<const float> votes = reduced.tail.subspan(sum_count_, kVotes);
  return {.sums = std::vector<double>(sums.begin(), sums.end()),
          .is_stop_requested = votes[kStopVote] > 0.0F,
          .is_regroup_requested = votes[kRegroupVote] > 0.0F,
          .is_savepoint_requested = votes[kSavepointVote] > 0.0F,
          .is_comparison_requested = votes[kComparisonVote] > 0.0F};
}

}  // namespace holdfast
