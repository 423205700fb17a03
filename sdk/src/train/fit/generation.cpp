// Survivors keep their state, so a failure costs no step while one of them lives. The ranks alone decide which state is
// the newest, from what each reports of itself: the watchdog knows processes and never a state. Ranks may die here,
// too, so each function may end in the middle; then all begin again in the next generation. docs/decisions/recovery.md

#include "train/fit/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "core/json_object.h"
#include "holdfast/base/log.h"
#include "train/agreement/same_program.h"
#include "train/context/other_choices.h"
#include "train/fit/ended_trainer.h"
#include "train/saving/callback_states.h"
#include "train/state/state_finder.h"

namespace holdfast {

Generation::Generation(Training& training, Agreement& agreement, Saver& saver, MemorySaver& memory_saver,
                       SampleSupply& samples)
    : training_(training), agreement_(agreement), saver_(saver), memory_saver_(memory_saver), samples_(samples) {}

void Generation::join() {
  if (std::exchange(has_joined_, true)) return;
  // This describes the own program. The state may soon be that of another process. Both texts are JSON.
  program_ = JsonObject()
                 .value("model", training_.state.graph)
                 .value("training", training_.state.configuration)
                 .value("seed", std::to_string(training_.state.seed))
                 .value("shards", std::to_string(training_.context->shards))
                 .value("threads_per_shard", std::to_string(training_.context->threads_per_shard))
                 .value("reduction", fmt::format("\"{}\"", name(training_.context->reduction)))
                 .text();
  record_trainer_before(*training_.context);
  if (!take_ended_state()) enter();
}

bool Generation::take_ended_state() {
  std::optional<TrainState> ended = find_ended_trainer(training_);
  if (!ended) return false;
  calls_of_arrays_ = has_state_ ? calls_of_own_arrays(*ended) : load_ended_arrays(training_, *ended);
  take_state(std::move(*ended));
  has_new_state_ = false;
  has_ended_ = true;
  log(LogLevel::debug,
      fmt::format("replica: the run has left Trainer {}, so its calls are skipped", training_.state.trainer + 1));
  return true;
}

// For a rank that was cut off in one of the last calls. Its arrays are those at the end, unless that call changes them.
std::size_t Generation::calls_of_own_arrays(const TrainState& ended) const {
  const std::vector<CallRecord>& own = training_.state.calls;
  const std::ptrdiff_t finished = std::ranges::find(own, false, &CallRecord::is_finished) - own.begin();
  if (std::any_of(ended.calls.begin() + finished, ended.calls.end(), changes_weights)) {
    throw Error(
        ErrorCode::cancelled,
        fmt::format("the other replicas have gone on to the next Trainer, and this one has not finished call {} "
                    "of Trainer {}; a new process takes its place",
                    finished + 1, ended.trainer + 1));
  }
  return ended.calls.size();
}

void Generation::join(const Dataset& data, WarmUp what, int shards_together) {
  if (has_joined_) return;
  // Then there is nothing to prepare.
  if (find_ended_trainer(training_)) return join();
  samples_.prepare(data);
  // Kernels are loaded and memory is found while no other rank waits. Else the first step would be the slow one.
  if (training_.is_supervised()) {
    warm_up(*training_.context, training_.trainable, data, prepared_workers_, what, shards_together);
  }
  join();
}

void Generation::prepare_workers() {
  Replica::Context& context = *training_.context;
  const int workers = shard_workers(context);
  // Workers of an earlier generation stay, and with them the kernels that they have made.
  if (workers <= prepared_workers_) return;
  training_.trainable.prepare({.count = workers,
                               .threads_per_shard = context.threads_per_shard,
                               .device = context.device,
                               .precision = context.precision});
  training_.trainable.memory().set_time_limit(context.collective_timeout);
  prepared_workers_ = workers;
}

void Generation::enter() {
  Replica::Context& context = *training_.context;
  for (;;) {
    try {
      // On a device the way out of a generation takes seconds, so it has a time limit of its own.
      if (training_.runner && !training_.trainable.memory().is_host()) training_.supervision.regroup();
      training_.runner.reset();
      // Only the rank that writes its savepoints can finish a fit(). The others train to its end once more, if it dies.
      if (training_.state.stage == FitStage::closing && !training_.is_primary()) has_state_ = false;
      training_.supervision.reach(FaultPoint::rendezvous, -1);
      // The watchdog learns whether this process has a state, and from which step. It never sees the state itself.
      // The next Trainer of a run begins in the generation of the one before.
      if (!std::exchange(context.is_in_generation, false)) {
        context.enter_generation(has_state_ ? training_.state.step : -1,
                                 [this] { memory_saver_.keep_while_waiting(); });
      }
      has_entered_ = true;
      // A spare, or a rank that was cut off from others in the last call, may learn only here that they have gone on.
      // It meets them in the next Trainer.
      if (take_ended_state()) return training_.enter(TrainingPhase::callbacks);
      prepare_workers();
      // The runner belongs to one generation, because its communicator does.
      training_.runner.emplace(context, training_.trainable);
      // Before arrays travel, whose sizes follow from it.
      require_same_program(training_, "a model", program_);
      if (context.hosts > 1) require_same_arithmetic(training_);
      settle_state();
      training_.runner->use_layout();
      warn_of_other_order();
      // From here on the watchdog looks for progress again.
      return training_.enter(TrainingPhase::callbacks);
    } catch (const GenerationEnded& ended) {
      log(LogLevel::debug, fmt::format("replica: {}; it waits for the next generation", ended.what()));
    } catch (const RollBack&) {
      // The survivors' states differ: all ranks give theirs up.
      has_state_ = false;
    }
  }
}

// Without a watchdog no state comes from elsewhere, and training begins with the initial one.
void Generation::settle_state() {
  if (!training_.is_supervised()) {
    has_state_ = true;
    return;
  }
  training_.enter(TrainingPhase::waiting_for_peers);
  std::vector<Introduction> ranks = introduce(progress());
  drop_rolled_back_state(ranks);
  const bool has_any =
      std::any_of(ranks.begin(), ranks.end(), [](const Introduction& rank) { return rank.progress.has_state != 0; });
  if (has_any) {
    share_newest_state(ranks);
  } else {
    load_state();
  }
  agreement_.forget_roll_back();
}

Generation::Progress Generation::progress() const {
  return has_state_ ? progress_of(training_.state) : Progress{};
}

Generation::Progress Generation::progress_of(const TrainState& state) {
  const auto finished =
      std::count_if(state.calls.begin(), state.calls.end(), [](const auto& call) { return call.is_finished; });
  return {.has_state = 1,
          // Calls come before steps: a later call may begin at a smaller epoch, and is newer all the same.
          .calls = static_cast<std::int64_t>(state.calls.size()),
          .finished_calls = finished,
          .epoch = state.epoch,
          .batch = state.batch,
          .step = state.step,
          .stage = static_cast<std::int64_t>(state.stage)};
}

std::vector<Generation::Introduction> Generation::introduce(const Progress& progress) {
  const Introduction own{.progress = progress,
                         .is_doubtful = agreement_.is_doubtful() ? 1 : 0,
                         .rolled_back_step = agreement_.rolled_back_step(),
                         .keeps_savepoints = training_.keeps_savepoints() ? 1 : 0};
  std::vector<Introduction> all(static_cast<std::size_t>(training_.context->size));
  // Every rank gets the same list, and so picks the same one as the newest without a further message.
  training_.runner->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                              training_.runner->deadline());
  return all;
}

// A state that one rank found wrong is wrong for all, also for those that were cut off before they learned it.
void Generation::drop_rolled_back_state(std::vector<Introduction>& ranks) {
  std::int64_t step = 0;
  for (const Introduction& rank : ranks) step = std::max(step, rank.rolled_back_step);
  if (step == 0) return;
  agreement_.share_roll_back(step, has_state_);
  // A step that gave a NaN was not applied, so the ranks that found it are one step before it.
  const bool is_disputed = training_.state.step >= step - 1;
  has_state_ = has_state_ && !is_disputed;
  if (!has_state_) {
    // Before anything looks for savepoints and removes what seems to be a dead writer's leftovers. Those under way are
    // of states that were agreed on, and so is a snapshot on its way from a device.
    memory_saver_.finish();
    saver_.finish_under_way();
    training_.enter(TrainingPhase::waiting_for_peers);
  }
  ranks = introduce(progress());
}

// A state whose comparison was cut off is compared again, by all ranks that hold it now. A lone rank has nothing to
// compare it with; there it is as good as a state between two comparisons.
void Generation::share_newest_state(const std::vector<Introduction>& ranks) {
  const auto newest = std::max_element(
      ranks.begin(), ranks.end(), [](const Introduction& a, const Introduction& b) { return a.progress < b.progress; });
  const bool is_doubtful = std::any_of(ranks.begin(), ranks.end(), [&](const Introduction& rank) {
    return rank.progress == newest->progress && rank.is_doubtful != 0;
  });
  // All ranks take part, also those that have the newest state: a broadcast needs everyone.
  share_state(static_cast<int>(newest - ranks.begin()), progress() < newest->progress);
  agreement_.forget_doubt();
  if (is_doubtful) agreement_.agree();
}

// Rank 0 looks in memory that outlived its process, and among the savepoints; where each host has a folder of its own,
// so does the first rank of each. Without any state, the run begins at step 0.
void Generation::load_state() {
  const Replica::Context& context = *training_.context;
  std::string text;
  std::exception_ptr none_left;
  std::optional<StateFinder> finder;
  if (training_.keeps_savepoints()) {
    training_.enter(TrainingPhase::starting);
    // The run directory is there. That of a later Trainer must be, when the first savepoint is written.
    if (context.trainer > 0 && context.writes_files) context.file_system->create_folders(context.trainer_directory());
    // One rank alone of those that share a folder: a file that changes meanwhile would give them different states.
    finder.emplace(*training_.context, training_.trainable, training_.state_arrays(), training_.state);
    finder->check_arithmetic();
    try {
      text = wanted_end_ ? finder->find_before_later_fit(*wanted_end_) : finder->find();
    } catch (const OtherChoices&) {
      // Another host may have a savepoint that serves.
      if (!context.has_own_folders || !wanted_end_) throw;
      none_left = std::current_exception();
    }
    training_.enter(TrainingPhase::waiting_for_peers);
  }
  const Search search = context.has_own_folders ? compare_found(text) : Search{};
  const int root = search.newest;
  if (finder && context.rank == root) {
    if (none_left) std::rethrow_exception(none_left);
    finder->tell_of_found();
  }
  text = training_.runner->share_text(std::move(text), root);
  // Each rank draws the initial weights by itself. They are a function of the seed.
  if (text.empty()) return begin_anew();
  TrainState state = train_state_from_json(text, "the state that another replica sent");
  training_.state_arrays().lay_out(state);
  share_arrays(root, true);
  take_state(std::move(state));
  training_.runner->use_layout();
  // Otherwise a host would have to do without it until the next savepoint, and where training is over none comes.
  if (search.is_any_without) saver_.keep_loaded_state(search.is_without);
}

// The first rank counts, where several have found the newest state, or none has found any.
Generation::Search Generation::compare_found(const std::string& found) {
  const Progress own =
      found.empty() ? Progress{} : progress_of(train_state_from_json(found, "the state of a savepoint"));
  const std::vector<Introduction> ranks = introduce(own);
  const auto newest = std::max_element(
      ranks.begin(), ranks.end(), [](const Introduction& a, const Introduction& b) { return a.progress < b.progress; });
  const auto is_without = [&](const Introduction& rank) {
    return rank.keeps_savepoints != 0 && rank.progress < newest->progress;
  };
  return {.newest = static_cast<int>(newest - ranks.begin()),
          .is_without = is_without(ranks[static_cast<std::size_t>(training_.context->rank)]),
          .is_any_without = std::ranges::any_of(ranks, is_without)};
}

// Also used when another state was given up, so everything is reset.
void Generation::begin_anew() {
  TrainState& state = training_.state;
  state.step = 0;
  state.epoch = 0;
  state.batch = 0;
  state.stage = FitStage::between_calls;
  state.calls.clear();
  state.callbacks.clear();
  state.learning_rate.reset();
  training_.state_arrays().lay_out(state);
  training_.trainable.initialize(training_.context->seed);
  has_state_ = true;
  has_new_state_ = true;
  training_.runner->use_layout();
}

// What a survivor brings along: the arrays, and the rest as JSON.
void Generation::share_state(int root, bool takes) {
  // A rank that takes the state gets the callbacks' state with it, as it is on the rank that sends it now.
  if (!takes) collect_callback_states(training_);
  std::string text;
  if (training_.context->rank == root) text = to_replica_json(training_.state);
  text = training_.runner->share_text(std::move(text), root);
  // The arrays are half old and half new if the generation ends within the next line.
  has_state_ = has_state_ && !takes;
  if (!takes) return share_arrays(root, false);
  TrainState state = train_state_from_replica_json(text);
  // Before the arrays come, there must be arrays for them.
  training_.state_arrays().lay_out(state);
  share_arrays(root, true);
  take_state(std::move(state));
}

void Generation::share_arrays(int root, bool takes) {
  StepRunner& runner = *training_.runner;
  const std::vector<StateSpan> spans = training_.state_arrays().spans();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    // After the first array: a fault here leaves replicas with half a state.
    if (i == 1) training_.supervision.reach(FaultPoint::broadcast, -1);
    runner.communicator().broadcast_arrays(std::span(&spans[i].values, 1), root, takes, runner.deadline());
  }
}

void Generation::take_state(TrainState state) {
  training_.state = std::move(state);
  has_state_ = true;
  has_new_state_ = true;
}

void Generation::go_back_before_later_fit(std::size_t call) {
  // Also for enter(): if the generation ends while it loads, the next one must look for the same state.
  wanted_end_ = call;
  has_state_ = false;
  try {
    load_state();
  } catch (const GenerationEnded&) {
    enter();
  }
  wanted_end_.reset();
}

// Before the first step whose bits differ from those of a run without failures.
void Generation::warn_of_other_order() {
  const Replica::Context& context = *training_.context;
  // On CPUs, sums are taken in the shards' order whatever was asked for.
  const bool depends_on_replicas = context.reduction == Reduction::fastest && !training_.trainable.memory().is_host();
  if (!depends_on_replicas || !training_.is_primary() || context.assignment() == context.first_assignment()) return;
  log(LogLevel::warning,
      fmt::format("from step {} on gradients are added over {} replicas, in another order than by the {} that the run "
                  "began with: with Reduction::fastest it ends with other bits than without failures",
                  training_.state.step, context.size, context.first_replicas));
  training_.supervision.report_event("sums_reordered", nlohmann::json{{"step", training_.state.step},
                                                                      {"replicas", context.size},
                                                                      {"first_replicas", context.first_replicas}}
                                                           .dump());
}

}  // namespace holdfast
