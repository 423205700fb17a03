// A run that is killed goes on from the bytes of its newest savepoint, in new processes, on any number of ranks. What
// its steps then read is checked here on pipelines, deaths and sizes that are drawn at random: each sample of an epoch
// once, with the bits and in the order of a run that nothing disturbed. docs/decisions/loading.md

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/shard_assignment.h"
#include "data/batches/batch_loader.h"
#include "data/stages/stage.h"
#include "support/temporary_folder.h"
#include "train/fit/epoch_plan.h"
#include "train/state/batch_changes.h"
#include "train/state/train_state.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/pipeline_draws.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr int kMostDeaths = 8;

using SampleRows = std::vector<std::vector<float>>;

// How a program trains, which all its starts have in common.
struct WalkChoices {
  std::int64_t window = 1;  // of the last shuffle
  std::int64_t batch = 1;
  BatchOptions remainder{};
  int shards = 1;
  FitOptions options{};
};

// For a data set of so many samples.
WalkChoices draw_choices(PipelineDraws& draws, std::int64_t samples) {
  WalkChoices choices{.window = 1 + draws.below(samples),
                      .batch = 1 + draws.below(std::min<std::int64_t>(samples, 12)),
                      .shards = static_cast<int>(1 + draws.below(5))};
  const std::int64_t remainder = draws.below(3);
  choices.remainder = {.drop_remainder = remainder == 1, .pad_remainder = remainder == 2};
  choices.options.epochs = 1 + draws.below(3);
  if (draws.below(3) == 0) {
    choices.options.global_batch.policy = BatchPolicy::per_replica;
    return choices;
  }
  // Several batches together might be more than there are, and a remainder that is dropped would be all.
  if (!choices.remainder.drop_remainder) choices.options.accumulate = 1 + draws.below(3);
  if (draws.below(2) == 0) choices.options.steps_per_epoch = 1 + draws.below(20);
  return choices;
}

// What comes after the drawn stages in the program: it is the same for each start.
Dataset batched(const Dataset& data, const WalkChoices& choices) {
  return data.shuffle(choices.window).batch(choices.batch, choices.remainder);
}

// What may differ between two starts: no bit depends on it.
Dataset with_cache(const Dataset& data, PipelineDraws& draws, const std::string& file) {
  if (!data.last_stage()->is_same_in_all_epochs()) return data;
  const std::int64_t way = draws.below(3);
  if (way == 1) return data.cache();
  return way == 2 ? data.cache(file, {.threads = static_cast<int>(1 + draws.below(2))}) : data;
}
Dataset with_prefetch(const Dataset& data, PipelineDraws& draws) {
  const auto depth = static_cast<int>(draws.below(4));
  return data.prefetch(depth, {.threads = depth == 0 ? 1 : static_cast<int>(1 + draws.below(3))});
}

// The savepoint of a fit() that has made no step.
std::string first_savepoint(const WalkChoices& choices) {
  TrainState state;
  state.seed = kSeed;
  state.shards = choices.shards;
  state.graph = "{}";
  state.configuration = "{}";
  CallRecord& fit = state.calls.emplace_back();
  fit.kind = "fit";
  fit.data = "{}";
  fit.epochs = choices.options.epochs;
  fit.steps_per_epoch = choices.options.steps_per_epoch;
  fit.accumulate = choices.options.accumulate;
  if (choices.options.global_batch.policy == BatchPolicy::per_replica) fit.per_replica.emplace();
  return to_json(state);
}

// The ranks of one start, which know their program and the bytes of a savepoint.
class Start {
 public:
  Start(const Dataset& data, const WalkChoices& choices, const std::string& savepoint, int ranks)
      : plan_(data, choices.options), state_(train_state_from_json(savepoint, "the savepoint")) {
    if (record().per_replica) note_replicas(record().per_replica->changes, state_.step, ranks);
    const EpochPlan::Position first = plan_.position(state_, record());
    const auto together = static_cast<int>(choices.options.accumulate);
    const ShardAssignment assignment = ShardAssignment::even(choices.shards, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      const ShardRange own = assignment.of(rank);
      loaders_.push_back(std::make_unique<BatchLoader>(
          plan_.data(), state_.seed, choices.shards * together, own.begin * together, own.end * together, first.pass,
          first.batch, plan_.end_pass(state_, record()), SampleWays(), EpochPlan::batches_together(record())));
    }
  }

  bool has_ended() const { return state_.epoch == state_.calls.front().epochs; }
  std::int64_t step() const { return state_.step; }
  std::string savepoint() const { return to_json(state_); }

  // The samples of the next step on all ranks, which is counted as fit() counts it.
  SampleRows make_step() {
    const EpochPlan::Position due = plan_.position(state_, record());
    SampleRows rows;
    for (const auto& loader : loaders_) {
      const std::optional<Batch> batch = loader->next();
      if (!batch || batch->epoch != due.pass || batch->index != due.batch) {
        ADD_FAILURE() << "a rank has another batch than the one that is due";
        return {};
      }
      for (const ShardSlice& shard : batch->shards) append(shard, rows);
    }
    ++state_.step;
    ++state_.batch;
    plan_.count(record(), static_cast<std::int64_t>(rows.size()));
    if (plan_.is_epoch_done(state_, record())) {
      ++state_.epoch;
      state_.batch = 0;
    }
    return rows;
  }

 private:
  CallRecord& record() { return state_.calls.front(); }

  void append(const ShardSlice& shard, SampleRows& rows) const {
    const std::size_t inputs = plan_.data().input_layout().words();
    const std::size_t targets = plan_.data().target_layout().words();
    for (std::size_t i = 0; i < static_cast<std::size_t>(shard.samples); ++i) {
      std::vector<float>& row = rows.emplace_back();
      const auto add = [&](std::span<const float> words) { row.insert(row.end(), words.begin(), words.end()); };
      add(shard.features.subspan(i * inputs, inputs));
      add(shard.targets.subspan(i * targets, targets));
    }
  }

  const EpochPlan plan_;
  TrainState state_;
  std::vector<std::unique_ptr<BatchLoader>> loaders_;
};

// The samples of all steps that count in the end, of a training that dies up to kMostDeaths times. `make` makes the
// data set anew for each start.
SampleRows disturbed_walk(const std::function<Dataset()>& make, const WalkChoices& choices, PipelineDraws& draws) {
  const TemporaryFolder folder;
  std::string savepoint = first_savepoint(choices);
  SampleRows kept;
  for (int start = 0;; ++start) {
    const Dataset data = with_prefetch(batched(with_cache(make(), draws, folder / "cache"), choices), draws);
    const auto ranks = static_cast<int>(1 + draws.below(choices.shards));
    Start processes(data, choices, savepoint, ranks);
    const std::int64_t steps_between_savepoints = 1 + draws.below(4);
    std::int64_t steps_to_live = start < kMostDeaths ? draws.below(12) : std::numeric_limits<std::int64_t>::max();
    // What is made after a savepoint is lost with the processes.
    SampleRows since;
    for (; !processes.has_ended() && steps_to_live > 0; --steps_to_live) {
      const SampleRows rows = processes.make_step();
      // The failure was told, and the step would fail in the next start too.
      if (rows.empty()) return kept;
      since.insert(since.end(), rows.begin(), rows.end());
      if (processes.step() % steps_between_savepoints != 0 && !processes.has_ended()) continue;
      savepoint = processes.savepoint();
      kept.insert(kept.end(), since.begin(), since.end());
      since.clear();
    }
    if (processes.has_ended()) return kept;
  }
}

// The samples of the same training by definition: those at the positions of each pass, loaded one by one.
SampleRows undisturbed_walk(const Dataset& data, const WalkChoices& choices) {
  const EpochPlan plan(batched(data, choices), choices.options);
  const Dataset& walked = plan.data();
  const std::int64_t epochs = choices.options.epochs;
  const std::int64_t of_pass = std::min(walked.size(), walked.batches() * walked.batch_size());
  const std::int64_t steps_per_epoch = choices.options.steps_per_epoch;
  const std::int64_t batches = (steps_per_epoch == 0 ? walked.batches() : steps_per_epoch) * epochs;
  const std::int64_t all = batches / walked.batches() * of_pass + batches % walked.batches() * walked.batch_size();
  SampleRows rows;
  for (std::int64_t i = 0; i < all; ++i) rows.push_back(loaded(walked, kSeed, i / of_pass, i % of_pass));
  return rows;
}

// No more than a test has time for.
Dataset short_pipeline(std::uint64_t number) {
  return pipeline(number).take(150);
}

}  // namespace

TEST(InterruptedWalks, ReadWhatOneWithoutDeathsReads) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    PipelineDraws draws(1000 + number);
    const WalkChoices choices = draw_choices(draws, short_pipeline(number).size());

    const SampleRows walked = disturbed_walk([&] { return short_pipeline(number); }, choices, draws);

    const SampleRows expected = undisturbed_walk(short_pipeline(number), choices);
    ASSERT_EQ(walked.size(), expected.size()) << "pipeline " << number;
    const auto first = std::ranges::mismatch(walked, expected).in1 - walked.begin();
    ASSERT_EQ(first, std::ssize(walked)) << "pipeline " << number
                                         << " reads another sample there: " << short_pipeline(number).description();
  }
}

namespace {

// Stages that change the order of samples, or how often an epoch has each of them.
class OrderDraws {
 public:
  explicit OrderDraws(std::uint64_t number) : draws_(number) {}

  Dataset dataset() {
    samples_ = 20 + draws_.below(30);
    Dataset data = numbers(samples_);
    for (std::int64_t stages = draws_.below(6); stages > 0; --stages) data = next(data);
    return data;
  }
  // How often an epoch of dataset() has each number, by what the stages promise.
  std::map<float, int> times() const {
    std::map<float, int> times;
    for (std::int64_t number = 0; number < samples_; ++number) times[static_cast<float>(number)] = rounds_;
    return times;
  }

 private:
  Dataset next(const Dataset& data) {
    // Parts of a joined data set have draws of their own, and a sample that moves could come in two parts or in none.
    const bool is_mixed = mixing_stage(*data.last_stage()) != nullptr;
    const std::int64_t border = draws_.below(data.size() - 1) + 1;
    switch (draws_.below(8)) {
      case 0:
        return data.shuffle(1 + draws_.below(data.size()));
      case 1:
        if (is_mixed) return data;
        return data.bucketed(1 + draws_.below(6), {.bounds = {1, 3}, .length_of = small_length});
      case 2: {
        if (data.size() > 100) return data;
        const auto rounds = static_cast<int>(1 + draws_.below(3));
        rounds_ *= rounds;
        return data.repeat(rounds);
      }
      case 3:
        return is_mixed ? data : Dataset::concatenate({data.skip(border), data.take(border)});
      case 4:
        return is_mixed ? data : Dataset::interleave({data.take(border), data.skip(border)});
      case 5: {
        // Splits need fixed positions.
        if (is_mixed || has_stage(*data.last_stage(), StageKind::repeat)) return data;
        const auto [training, validation] = data.split(border, {.seed = 3});
        return Dataset::interleave({validation.shuffle(4), training});
      }
      case 6:
        // The draws belong to the position, and leave the first number as it is.
        return data.map([](Sample sample, Random& random) { sample.features[1] += random.uniform(); }, "noise");
      default:
        return data.window(1);
    }
  }

  PipelineDraws draws_;
  std::int64_t samples_ = 0;
  int rounds_ = 1;
};

// How often each number comes, without copies of weight 0 that fill the last batch.
std::map<float, int> times_of_numbers(std::span<const std::vector<float>> rows, bool has_weights) {
  std::map<float, int> times;
  for (const std::vector<float>& row : rows) {
    if (!has_weights || row.back() != 0) ++times[row.front()];
  }
  return times;
}

}  // namespace

TEST(InterruptedWalks, GiveEachSampleOnceAnEpoch) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    const auto make = [&] { return OrderDraws(number).dataset(); };
    OrderDraws order(number);
    const Dataset data = order.dataset();
    PipelineDraws draws(2000 + number);
    WalkChoices choices = draw_choices(draws, data.size());
    choices.remainder.drop_remainder = false;
    // Whole passes, which have an end to look at.
    choices.options.steps_per_epoch = 0;

    const SampleRows walked = disturbed_walk(make, choices, draws);

    // Without a remainder there is nothing to fill, and no weight.
    const bool has_weights = batched(data, choices).has_sample_weights();
    const auto epochs = static_cast<std::size_t>(choices.options.epochs);
    ASSERT_EQ(walked.size() % epochs, 0U) << data.description();
    const std::size_t rows = walked.size() / epochs;
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      const auto times = times_of_numbers(std::span(walked).subspan(epoch * rows, rows), has_weights);
      ASSERT_EQ(times, order.times()) << "epoch " << epoch << " of pipeline " << number << ": " << data.description();
    }
  }
}

}  // namespace holdfast
