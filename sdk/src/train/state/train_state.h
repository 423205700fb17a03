#pragma once

// Everything of a run that must survive and is not in the Trainable's arrays: the position, results, and the state of
// callbacks. Together with these arrays it is the whole state of training.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"
#include "holdfast/train/global_batch.h"
#include "holdfast/train/reduction.h"

namespace holdfast {

// The batch of a fit() with BatchPolicy::per_replica.
struct PerReplicaBatch {
  int rate_for_replicas = 0;
  std::vector<BatchChange> changes{};  // batch_changes.h
  // Batches of one replica that are done since the call began: the data cursor, since steps differ in size.
  std::int64_t batches_done = 0;

  // Whose batches the next step takes together; 1 before the first step.
  int replicas() const { return changes.empty() ? 1 : changes.back().replicas; }
};

// One call of fit() or evaluate(), in the order of the program.
struct CallRecord {
  std::string kind;  // "fit", "evaluate", "predict", "load_weights", "take_averages", "compile"
  // Dataset::description(); of "load_weights" the digest of the weights; of "take_averages" null; of "compile" what is
  // trained, and how:
  // {"frozen": [names of layers], "optimizer": its configuration, "slots": [names]}.
  std::string data;
  std::int64_t epochs = 0;
  std::int64_t steps_per_epoch = 0;  // 0: an epoch is a pass over the data
  std::int64_t accumulate = 1;       // batches of a step
  // Whether the shards of these batches are added in the tree over all of them although its nodes are not the shards of
  // the run. Earlier versions added them in another order then.
  bool adds_as_one_batch = false;
  bool is_finished = false;
  bool is_ended_by_callback = false;  // with its last epoch, which the number of epochs does not show
  // The step at which fit() ended and saved its state because no callback did; -1 without such a step. That savepoint
  // is deleted after fit() has gone on and ended at another step.
  std::int64_t own_savepoint_step = -1;
  Logs results;
  std::vector<Logs> history;
  // Sums over the samples of the current epoch so far, in the order of Trainable::sum_names().
  std::vector<double> epoch_sums;
  std::int64_t epoch_samples = 0;
  std::int64_t epoch_skipped_samples = 0;  // among these, samples of skipped steps, which are not in the sums
  // The step at which a "compile" came. The updates of its optimizer are counted from there.
  std::int64_t begun_at_step = -1;
  // If the samples have weights: their sum over the steps that were not skipped.
  std::optional<double> epoch_weight;
  // If the Trainable has divisors of its own: their sums over these steps, by which `epoch_sums` are divided.
  std::vector<double> epoch_divisors;
  // Whether a callback of this fit() may keep weights, the epoch that they are of (-1: none yet), and what becomes of
  // them at the end.
  bool keeps_weights = false;
  std::int64_t kept_epoch = -1;
  enum class KeptUse { unused, due, restored } kept_use = KeptUse::unused;
  // Only a fit() with BatchPolicy::per_replica has it.
  using PerReplica = PerReplicaBatch;
  std::optional<PerReplica> per_replica;
};

// Whether the state after this call has other weights than before it.
inline bool changes_weights(const CallRecord& call) {
  return call.kind != "evaluate" && call.kind != "predict";
}

// How far fit() is, besides epoch and batch. If two states have equal epoch and batch, the one in the later stage is
// newer.
enum class FitStage {
  before_epoch,   // on_epoch_begin() is due
  in_epoch,       // on_epoch_begin() was called
  last_step,      // on_epoch_begin() or on_step_begin() asked for the end of fit(), which comes after the next step
  ending,         // a callback asked for the end of fit(), which comes with this state
  closing,        // fit() has finished, and its savepoints may not be durable yet
  between_calls,  // no fit() is under way
};

struct TrainState {
  // Chosen at the first start of the run.
  std::uint64_t seed = 0;
  int shards = 1;
  int threads_per_shard = 1;
  Reduction reduction = Reduction::shard_order;
  int trainer = 0;                                // number of the Trainer in its run, from 0 on
  std::string graph;                              // Trainable::graph()
  std::string configuration;                      // Trainable::configuration()
  std::map<std::string, std::string> attached{};  // by Trainer::attach()

  std::int64_t step = 0;   // updates applied
  std::int64_t epoch = 0;  // of the call that is under way
  std::int64_t batch = 0;  // steps of that epoch that are done; the data cursor, but for CallRecord::per_replica
  FitStage stage = FitStage::between_calls;
  std::vector<CallRecord> calls;
  std::map<std::string, CallbackState> callbacks;
  std::optional<float> learning_rate{};  // that a callback set; empty: that of the configuration
};

// Whether the state holds a second copy of the weights: until a call changes the weights after the one that kept it.
bool keeps_weights(const TrainState& state);
// What the arrays of the state are laid out for, as Trainable::lay_out() takes it: the text of the last compile() that
// is finished, with the step at which it came; empty without one.
std::string laid_out_training(const TrainState& state);
std::string laid_out_training(const CallRecord& compile);
// The graph and the configuration of this moment. They differ from those that the run began with after a compile().
std::string present_graph(const TrainState& state);
std::string present_configuration(const TrainState& state);

// Deterministic JSON, described in docs/format.md. Doubles keep their bits. Throws Error{invalid_argument} for a name
// or a callback's text that is not UTF-8.
std::string to_json(const TrainState& state);
// What a file of the weights alone says of them: the graph, the step and the metrics.
std::string to_weights_json(const TrainState& state);
// Reads JSON that to_json() wrote. A savepoint holds a state between two steps, so the stage follows from epoch and
// batch, and from whether a callback asked for the end of fit() with this state. Throws Error{invalid_file} for other
// text; the sentence names `origin` and says what is wrong.
TrainState train_state_from_json(const std::string& text, const std::string& origin);

// The same with the stage, for another replica that takes over exactly this state.
std::string to_replica_json(const TrainState& state);
TrainState train_state_from_replica_json(const std::string& text);

// Throws OtherChoices if the run `now` makes other choices than the `saved` one. The sentence names the first eight of
// them, with both values.
void require_same_choices(const TrainState& saved, const TrainState& now, const std::string& origin);

}  // namespace holdfast
