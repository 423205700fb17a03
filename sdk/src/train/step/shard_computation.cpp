// Shards of one rank may run at once, each with a worker's own memory, in any order: the accumulator adds them in the
// order of the shard tree, so that bits do not depend on which one ends first. Requests, checks, and gradients
// that go to other ranks before the shard is done are here, too. See docs/decisions/sums.md.

#include "train/step/shard_computation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "compute/cpu/shared_passes.h"
#include "holdfast/base/error.h"

namespace holdfast {

std::size_t floats_of_outputs(const Trainable& trainable) {
  std::size_t floats = 0;
  for (const ArraySpec& output : trainable.outputs()) floats += static_cast<std::size_t>(output.shape.element_count());
  return floats;
}

int shard_workers(const Replica::Context& context) {
  return std::min(context.assignment().most(), context.workers);
}

ShardComputation::ShardComputation(Replica::Context& context, Trainable& trainable, Communicator& communicator,
                                   const BlockLayout& layout, const ShardAssignment& assignment)
    : context_(context),
      trainable_(trainable),
      communicator_(communicator),
      layout_(layout),
      local_(assignment.of(context.rank)),
      faulty_(*context.supervision, trainable),
      workers_(shard_workers(context)),
      passes_(compute::shared_passes(workers_, context.threads_per_shard)),
      accumulator_(ShardTree(assignment.shards()), local_, communicator.slots(), trainable.memory()),
      scratch_(static_cast<std::size_t>(workers_.size())) {
  communicator_.set_passes(passes_);
}

void ShardComputation::compute(const Batch& batch, std::int64_t step, const Options& options) {
  HOLDFAST_ASSERT(static_cast<int>(batch.shards.size()) == local_.count() * options.shards_together);
  options_ = options;
  lone_sum_is_finite_.reset();
  accumulator_.reset();
  begin_deferred(batch, step);
  StepCheck* const check = options.check;
  const int recomputed = check == nullptr ? 0 : static_cast<int>(check->others.size());

  // Own shards first. Checks of others fill the workers that would otherwise wait for the last own shard.
  workers_.run(local_.count() + recomputed, [&](int worker, int index) {
    if (index >= local_.count()) {
      return recompute_shard(batch, check->others[static_cast<std::size_t>(index - local_.count())], step, worker);
    }
    const ProfiledShard profiled(context_.profile, worker, local_.begin + index);
    const Slot slot = acquire(index);
    const Work work{.batch = batch, .step = step, .worker = worker};
    const bool is_sent_ahead = can_overlap(index, step);
    if (options.shards_together > 1) {
      const int first = index * options.shards_together;
      compute_together(work, {first, first + options.shards_together}, slot, 0);
    } else {
      GradientSink::Options asked = is_sent_ahead ? send_when_ready(index, step) : GradientSink::Options();
      if (defers_) asked.deferred = &deferred_.of(index);
      GradientSink sink = open_sink(slot, std::move(asked));
      const std::span<float> sums = sums_of(batch, slot);
      trainable_.compute_gradients(shard_batch(batch, static_cast<std::size_t>(index), step, worker), sink, sums);
      end_shard(work, sink, sums);
    }
    if (check != nullptr) check->own_digests[static_cast<std::size_t>(index)] = digest_of(slot);
    context_.profile.enter(StepProfile::line_of_worker(worker), "sum_of_shards");
    // Gradients that were sent ahead are added already.
    complete(index, slot, !is_sent_ahead);
  });

  const std::optional<bool> is_finite = accumulator_.finish(passes_);
  const bool are_deferred_finite = add_deferred();
  if (is_finite && context_.size == 1) lone_sum_is_finite_ = *is_finite && are_deferred_finite;
  options_ = {};
  if (check == nullptr) return;
  // The comparison joins one slot of this rank, so it counts once in the sum over all ranks.
  const Slot slot = communicator_.slots()[static_cast<std::size_t>(covering_slots().front())];
  add_to_sum(check->report(local_.begin), check->recomputations, layout_.check(slot.tail));
}

// A few numbers a sample, so one thread reads them all.
void ShardComputation::sum_divisors(const Batch& batch, std::int64_t step, int shards_together, std::size_t count) {
  HOLDFAST_ASSERT(static_cast<int>(batch.shards.size()) == local_.count() * shards_together);
  accumulator_.reset();
  for (int index = 0; index < local_.count(); ++index) {
    const Slot slot = acquire(index);
    const int first = index * shards_together;
    sum_divisors_of(batch, step, {first, first + shards_together}, slot.tail.first(count));
    // Requests wait for the sums that follow.
    accumulator_.complete(local_.begin + index, {.begin = layout_.gradient_floats(), .end = layout_.block_floats()});
  }
  accumulator_.finish(passes_);
}

// In the order of the tree, as compute_together() adds.
void ShardComputation::sum_divisors_of(const Batch& batch, std::int64_t step, ShardRange shards,
                                       std::span<float> divisors) {
  if (shards.count() == 1) {
    return trainable_.sum_divisors(shard_batch(batch, static_cast<std::size_t>(shards.begin), step, 0), divisors);
  }
  const auto children = ShardTree::children(shards);
  std::vector<float> right(divisors.size());
  sum_divisors_of(batch, step, children.first, divisors);
  sum_divisors_of(batch, step, children.second, right);
  host_memory().add(right, divisors);
}

void ShardComputation::compute_sums(const Batch& batch, std::int64_t step) {
  HOLDFAST_ASSERT(static_cast<int>(batch.shards.size()) == local_.count());
  context_.supervision->enter(TrainingPhase::evaluating, step);
  options_ = {};
  accumulator_.reset();
  workers_.run(local_.count(), [&](int worker, int index) {
    const ProfiledShard profiled(context_.profile, worker, local_.begin + index);
    compute_sums_of_shard(batch, step, worker, index);
  });
  accumulator_.finish(passes_);
}

void ShardComputation::predict(const Batch& batch, std::int64_t step, std::span<float> outputs) {
  HOLDFAST_ASSERT(static_cast<int>(batch.shards.size()) == local_.count());
  context_.supervision->enter(TrainingPhase::evaluating, step);
  const std::size_t floats = floats_of_outputs(trainable_);
  const std::int64_t first = batch.shards.front().first_sample;
  workers_.run(local_.count(), [&](int worker, int index) {
    ShardBatch shard = shard_batch(batch, static_cast<std::size_t>(index), step, worker);
    // The data may have any targets, or weights, which mean nothing here.
    shard.targets = {};
    shard.target_layout = nullptr;
    shard.has_sample_weights = false;
    const auto place = static_cast<std::size_t>(shard.first_sample - first) * floats;
    trainable_.predict(shard, outputs.subspan(place, static_cast<std::size_t>(shard.samples) * floats));
  });
}

void ShardComputation::end_shard(const Work& work, GradientSink& sink, std::span<float> sums) {
  if (work.has_faults) faulty_.end_backward(work.step, sink, sums);
  require_all_ready(sink);
  if (work.has_faults && is_lone_shard()) lone_sum_is_finite_ = sink.is_finite();
}

// One shard at a time, so activations take the memory of one. A sum waits for its right sibling in a block for each
// level of the tree.
void ShardComputation::compute_together(const Work& work, ShardRange shards, const Slot& into, std::size_t depth) {
  if (shards.count() == 1) {
    GradientSink sink = open_sink(into, {});
    const std::span<float> sums = sums_of(work.batch, into);
    const auto shard = static_cast<std::size_t>(shards.begin);
    trainable_.compute_gradients(shard_batch(work.batch, shard, work.step, work.worker), sink, sums);
    return end_shard(work, sink, sums);
  }
  const auto children = ShardTree::children(shards);
  compute_together(work, children.first, into, depth + 1);
  const Slot right = scratch(work.worker, depth);
  std::fill(right.tail.begin(), right.tail.end(), 0.0F);
  compute_together(work, children.second, right, depth + 1);
  memory().add(right.gradients, into.gradients);
  host_memory().add(right.tail, into.tail);
}

Slot ShardComputation::scratch(int worker, std::size_t depth) {
  std::vector<Scratch>& of_worker = scratch_[static_cast<std::size_t>(worker)];
  while (of_worker.size() <= depth) {
    of_worker.push_back(
        {.gradients = memory().allocate(layout_.gradient_floats()), .tail = std::vector<float>(layout_.tail_floats())});
  }
  Scratch& found = of_worker[depth];
  return {.gradients = {found.gradients.get(), layout_.gradient_floats()}, .tail = found.tail};
}

void ShardComputation::compute_sums_of_shard(const Batch& batch, std::int64_t step, int worker, int index) {
  const Slot slot = acquire(index);
  trainable_.compute_sums(shard_batch(batch, static_cast<std::size_t>(index), step, worker), sums_of(batch, slot));
  // An evaluation has no gradients, so only the tails are added.
  complete(index, slot, false);
}

Slot ShardComputation::acquire(int index) {
  const Slot slot = accumulator_.acquire(local_.begin + index);
  // The slot may have the numbers of an earlier shard, and whatever is not written now would be added again.
  std::fill(slot.tail.begin(), slot.tail.end(), 0.0F);
  return slot;
}

// A rank makes its requests with its first shard, as late as possible.
void ShardComputation::complete(int index, const Slot& slot, bool with_gradients) {
  if (index == 0) write_requests(slot.tail);
  accumulator_.complete(local_.begin + index,
                        {.begin = with_gradients ? 0 : layout_.gradient_floats(), .end = layout_.block_floats()},
                        defers_ ? deferred_.ranges_of(index) : std::span<const FloatRange>());
}

// Whether shards may leave gradients to their sum. Nothing else may need a shard's own gradients, and all shards must
// have the same ones to leave. Ranks may differ in this: the bits are the same.
void ShardComputation::begin_deferred(const Batch& batch, std::int64_t step) {
  compute::DeferralLimits limits;
  limits.least_samples = std::numeric_limits<std::int64_t>::max();
  for (const ShardSlice& shard : batch.shards) {
    limits.least_samples = std::min(limits.least_samples, shard.samples);
    limits.most_samples = std::max(limits.most_samples, shard.samples);
    limits.all_samples += shard.samples;
  }
  defers_ = memory().is_host() && local_.count() > 1 && limits.least_samples > 0 && options_.shards_together == 1 &&
            options_.check == nullptr && !context_.supervision->may_corrupt(FaultPoint::backward, step);
  if (defers_) deferred_.begin(local_.count(), limits);
}

// To the slots that have the sums of the other gradients. Returns false if a sum of several shards is not finite.
bool ShardComputation::add_deferred() {
  if (!std::exchange(defers_, false)) return true;
  bool is_finite = true;
  for (const ShardAccumulator::Sum& sum : accumulator_.sums()) {
    const ShardRange shards{sum.shards.begin - local_.begin, sum.shards.end - local_.begin};
    if (!deferred_.add(shards, sum.slot.gradients, passes_).value_or(true)) is_finite = false;
  }
  return is_finite;
}

// Injects no faults. The memory is temporary, because checks are rare, and aligned as the owner's is.
void ShardComputation::recompute_shard(const Batch& batch, StepCheck::Recomputation& recomputation, std::int64_t step,
                                       int worker) {
  const std::shared_ptr<float[]> gradients = memory().allocate(layout_.gradient_floats());
  std::vector<float> tail(layout_.tail_floats());
  const Slot slot{.gradients = {gradients.get(), layout_.gradient_floats()}, .tail = tail};
  const Batch& samples = recomputation.samples ? recomputation.samples->batch() : batch;
  const Work work{.batch = samples, .step = step, .worker = worker, .has_faults = false};
  const int together = options_.shards_together;
  const int first = static_cast<int>(recomputation.index) * together;
  compute_together(work, {first, first + together}, slot, 0);
  recomputation.digest = digest_of(slot);
}

std::span<float> ShardComputation::sums_of(const Batch& batch, const Slot& slot) const {
  return batch.has_weights() ? layout_.weighted_sums(slot.tail) : layout_.sums(slot.tail);
}

ShardBatch ShardComputation::shard_batch(const Batch& batch, std::size_t index, std::int64_t step, int worker) const {
  const ShardSlice& slice = batch.shards[index];
  return {.worker = worker,
          .seed = context_.seed,
          .step = step,
          .first_sample = slice.first_sample,
          .samples = slice.samples,
          .batch_samples = batch.samples,
          .features = slice.features,
          .targets = slice.targets,
          .input_layout = batch.input_layout(),
          .target_layout = batch.target_layout(),
          .has_sample_weights = batch.has_weights(),
          .divisors = divisors_,
          .is_on_device = batch.is_on_device,
          .check_cancelled = [this] { check_cancelled(); },
          .begin_part = parts_of(worker)};
}

// Two words are what a std::function holds without memory of its own.
std::function<void(std::string_view)> ShardComputation::parts_of(int worker) const {
  if (!context_.profile.is_on()) return {};
  return [&profile = context_.profile, line = StepProfile::line_of_worker(worker)](std::string_view part) {
    profile.enter(line, part);
  };
}

// The padding is added with the gradients, and must be zero.
GradientSink ShardComputation::open_sink(const Slot& slot, GradientSink::Options options) {
  memory().fill_zero(slot.gradients.subspan(layout_.gradient_count()));
  // In other cases the sum over shards is what must be finite, and the reduction looks at it.
  options.asks_if_finite = is_lone_shard();
  return GradientSink(slot.gradients.first(layout_.gradient_count()), std::move(options));
}

void ShardComputation::require_all_ready(const GradientSink& sink) const {
  if (sink.ready_count() == layout_.gradient_count()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("compute_gradients() declared {} of {} floats ready; declare each of them once",
                          sink.ready_count(), layout_.gradient_count()));
}

// The one shard of a device that trains alone.
bool ShardComputation::is_lone_shard() const {
  return context_.size == 1 && local_.count() == 1 && options_.shards_together == 1 && !memory().is_host();
}

// Only the last shard of a device can overlap, and only if other ranks wait for it and nothing reads or changes its
// gradients before they are sent. On CPUs the cores that add are those that compute. Ranks may differ in this.
bool ShardComputation::can_overlap(int index, std::int64_t step) const {
  return !memory().is_host() && context_.size > 1 && workers_.size() == 1 && index + 1 == local_.count() &&
         options_.shards_together == 1 && options_.check == nullptr && layout_.gradient_count() > 0 &&
         !context_.supervision->may_corrupt(FaultPoint::backward, step);
}

GradientSink::Options ShardComputation::send_when_ready(int index, std::int64_t step) {
  const auto send = [this, index, step, missing = layout_.gradient_count()](std::size_t begin,
                                                                            std::size_t end) mutable {
    missing -= std::min(missing, end - begin);
    // The padding is complete, too.
    const FloatRange bucket{begin, end == layout_.gradient_count() ? layout_.gradient_floats() : end};
    const std::vector<int> slots = accumulator_.add_ahead(local_.begin + index, bucket);
    communicator_.mark_ready(slots, bucket);
    if (missing > 0) return;
    context_.supervision->enter(TrainingPhase::waiting_for_peers, step);
    // Only after the last bucket: this may wait for other ranks, and all that they need is queued by then.
    communicator_.begin_reduce(slots, Deadline::after(context_.collective_timeout));
    context_.supervision->enter(TrainingPhase::computing, step);
  };
  return {.on_ready = send, .least_floats = communicator_.bucket_floats()};
}

// Rank 0 alone asks for a savepoint: the other ranks may learn of the request after it was answered.
void ShardComputation::write_requests(std::span<float> tail) const {
  StepRequests requests = context_.supervision->requests();
  requests.savepoint = requests.savepoint && context_.rank == 0;
  requests.comparison = options_.asks_comparison;
  requests.end = options_.asks_end;
  layout_.write_requests(requests, tail);
}

Digest ShardComputation::digest_of(const Slot& slot) const {
  const std::span<const float> gradients = slot.gradients;
  const std::array<Digest, 2> parts{memory().digest_of(std::span(&gradients, 1)),
                                    // Sums are compared too: a wrong loss with right gradients would still end in the
                                    // results.
                                    digest(std::as_bytes(layout_.weighted_sums(slot.tail)))};
  return digest(std::as_bytes(std::span(parts)));
}

// The shard will be computed again from the present state, so the other ranks need not wait for its end.
void ShardComputation::check_cancelled() const {
  if (communicator_.is_cancelled()) throw GenerationEnded("the generation ended while a shard was being computed");
}

}  // namespace holdfast
