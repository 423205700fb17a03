// Outputs are computed by all replicas in the shards of evaluate(), so that a sample's bits depend on its batch alone.
// They are too large for the state. A process that joins after the call computes them again by itself, with the same
// bits, as long as the weights are those of the call. docs/decisions/calls.md

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/batches/batch_loader.h"
#include "data/batches/padded_batches.h"
#include "data/batches/sample_places.h"
#include "holdfast/base/error.h"
#include "train/fit/fit_checks.h"
#include "train/fit/session.h"
#include "train/fit/watching/inference_context.h"
#include "train/fit/weights_in_use.h"
#include "train/state/run_results.h"

namespace holdfast {
namespace {

// Tensors [samples, shape] of each output, from the outputs of one shard after another.
class BatchOutputs {
 public:
  BatchOutputs(const std::vector<ArraySpec>& specs, std::int64_t samples) : samples_(samples) {
    for (const ArraySpec& spec : specs) tensors_.emplace_back(spec.shape.with_batch(samples));
  }

  // One output after another of so many samples, the first of which is `first`. Returns what follows them.
  std::span<const float> take(std::int64_t first, std::int64_t samples, std::span<const float> outputs) {
    for (Tensor& tensor : tensors_) {
      const std::size_t each = tensor.values().size() / static_cast<std::size_t>(samples_);
      const std::size_t count = each * static_cast<std::size_t>(samples);
      std::ranges::copy(outputs.first(count), tensor.values().subspan(each * static_cast<std::size_t>(first)).begin());
      outputs = outputs.subspan(count);
    }
    return outputs;
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::int64_t samples_;
  std::vector<Tensor> tensors_;
};

}  // namespace

void Trainer::Session::predict(const Dataset& padded_data, const PredictionSink& sink,
                               const InferenceOptions& options) {
  const Dataset data = without_padding(padded_data);
  require_fitting_inputs(data, training_.trainable, "predict()");
  if (!sink) throw Error(ErrorCode::invalid_argument, "predict() was given an empty function for its outputs");
  const Weights weights = weights_for(options.weights, "predict()");
  generation_.join();
  const CallRecord begun = new_call_with("predict", data, weights);
  const std::size_t call = join_call(begun, watchers_as_arguments(options.callbacks));
  const InferenceContext context(training_, call, data.batches());
  const Watchers watchers(training_, options.callbacks, context);
  in_call(call, [&] { run_predict(call, begun, {data, weights, watchers}, sink); });
}

Tensor Trainer::Session::predict(const Dataset& padded_data, const InferenceOptions& options) {
  const Dataset data = without_padding(padded_data);
  require_fitting_inputs(data, training_.trainable, "predict()");
  const Weights weights = weights_for(options.weights, "predict()");
  const std::vector<ArraySpec> outputs = training_.trainable.outputs();
  if (outputs.size() != 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the model has {} outputs, and predict() of a data set returns one; give it a function, "
                            "which gets all of them batch by batch",
                            outputs.size()));
  }
  const std::int64_t last = data.batches() - 1;
  Tensor all(outputs.front().shape.with_batch(last * data.batch_size() + samples_of_batch(data, last)));
  // Batches are full but for the last one, so the tensor is as long as all samples that are read.
  const std::size_t each = all.values().size() / static_cast<std::size_t>(all.shape()[0]);
  const PredictionSink keep = [&](std::int64_t first, const std::vector<Tensor>& batch) {
    std::ranges::copy(batch.front().values(), all.values().subspan(each * static_cast<std::size_t>(first)).begin());
  };
  generation_.join();
  const CallRecord begun = new_call_with("predict", data, weights);
  const std::size_t call = join_call(begun, watchers_as_arguments(options.callbacks));
  const InferenceContext context(training_, call, data.batches());
  const Watchers watchers(training_, options.callbacks, context);
  in_call(call, [&] {
    // False for a call that had finished before this start: its outputs were in a process that is gone.
    if (run_predict(call, begun, {data, weights, watchers}, keep)) return;
    // Weights that a later call has changed give other outputs than those of this call.
    const auto later = training_.state.calls.begin() + static_cast<std::ptrdiff_t>(call) + 1;
    // In a Trainer that has ended, the arrays are still those of this moment where later calls are repeated.
    const auto end = generation_.has_ended()
                         ? training_.state.calls.begin() +
                               static_cast<std::ptrdiff_t>(std::max(call + 1, generation_.calls_of_arrays()))
                         : training_.state.calls.end();
    if (std::any_of(later, end, changes_weights)) {
      throw Error(ErrorCode::incompatible,
                  fmt::format("predict(), call {} of the Trainer, had finished before this start, and a later call has "
                              "changed the weights, so its outputs cannot be computed again; give predict() a "
                              "function that writes them to a file",
                              call + 1));
    }
    predict_alone(data, keep, weights);
  });
  return all;
}

// Returns whether the sink has got all batches in this call.
bool Trainer::Session::run_predict(std::size_t call, const CallRecord& begun, const Inference& asked,
                                   const PredictionSink& sink) {
  bool is_complete = false;
  // Not entered for a call that had finished before this start: its sink has got everything.
  while (!record_of(call).is_finished) {
    try {
      is_complete = false;
      predict_once(asked, sink);
      // Before the ranks meet: a generation that ends there may leave the call finished, and this sink has got all
      // batches.
      is_complete = true;
      meet_at_the_end();
      record_of(call).is_finished = true;
    } catch (const GenerationEnded&) {
      begin_next_generation(begun);
    } catch (const RollBack&) {
      generation_.give_up_state();
      begin_next_generation(begun);
    }
  }
  note_results(*training_.context, training_.state, training_.weights_digest());
  return is_complete;
}

void Trainer::Session::predict_once(const Inference& asked, const PredictionSink& sink) {
  const Dataset& data = asked.data;
  const WeightsInUse in_use(training_.trainable, asked.weights);
  asked.watchers.tell(&Callback::on_predict_begin);
  const std::vector<ArraySpec> specs = training_.trainable.outputs();
  const int shards = training_.context->shards;
  const auto loader = samples_.open(data, {});
  std::vector<float> outputs;
  for (;;) {
    training_.enter(TrainingPhase::reading_data);
    const std::optional<Batch> batch = loader->next();
    if (!batch) break;
    asked.watchers.tell(&Callback::on_predict_batch_begin, batch->index);
    outputs.resize(static_cast<std::size_t>(batch->samples) * floats_of_outputs(training_.trainable));
    naming_sample_of(data, training_.context->seed, *batch,
                     [&] { training_.runner->predict(*batch, training_.state.step, outputs); });
    share_requests();
    // Outputs lie shard by shard, and in a shard output by output. A sink gets each output as one tensor.
    BatchOutputs parts(specs, batch->samples);
    std::span<const float> rest = outputs;
    for (int shard = 0; shard < shards; ++shard) {
      const std::int64_t first = begin_of_shard(batch->samples, shard, shards);
      rest = parts.take(first, begin_of_shard(batch->samples, shard + 1, shards) - first, rest);
    }
    training_.enter(TrainingPhase::callbacks);
    sink(batch->index * data.batch_size(), parts.tensors());
    asked.watchers.tell(&Callback::on_predict_batch_end, batch->index);
    // After the sink has this batch. In the next generation it gets all batches again, from the first on.
    end_where_asked();
  }
  asked.watchers.tell(&Callback::on_predict_end);
}

// Without sums, in whose tail the ranks ask else. Each rank gives a byte: 1 for a stop, 2 to regroup. The others are
// about the end of a step of fit().
void Trainer::Session::share_requests() {
  const StepRequests own = training_.supervision.requests();
  const std::uint8_t bits = static_cast<std::uint8_t>((own.stop ? 1 : 0) | (own.regroup ? 2 : 0));
  std::vector<std::uint8_t> all(static_cast<std::size_t>(training_.context->size));
  training_.runner->communicator().gather_all(std::as_bytes(std::span(&bits, 1)),
                                              std::as_writable_bytes(std::span(all)), training_.runner->deadline());
  for (const std::uint8_t asked : all) asked_ |= {.stop = (asked & 1) != 0, .regroup = (asked & 2) != 0};
}

// The other ranks are in a later call, so this one computes all shards by itself.
void Trainer::Session::predict_alone(const Dataset& data, const PredictionSink& sink, Weights weights) {
  const WeightsInUse in_use(training_.trainable, weights);
  const Replica::Context& context = *training_.context;
  const std::vector<ArraySpec> specs = training_.trainable.outputs();
  std::vector<float> outputs;
  for (std::int64_t index = 0; index < data.batches(); ++index) {
    training_.enter(TrainingPhase::evaluating);
    // Shard 0 to the last one, of epoch 0: the samples that all ranks together load in predict_once().
    const LoadedShards loaded(data, context.seed, context.shards, 0, context.shards, 0, index);
    const Batch& batch = loaded.batch();
    BatchOutputs parts(specs, batch.samples);
    for (const ShardSlice& shard : batch.shards) {
      outputs.resize(static_cast<std::size_t>(shard.samples) * floats_of_outputs(training_.trainable));
      const ShardBatch samples = {.seed = context.seed,
                                  .step = training_.state.step,
                                  .first_sample = shard.first_sample,
                                  .samples = shard.samples,
                                  .batch_samples = batch.samples,
                                  .features = shard.features,
                                  .targets = {},
                                  .input_layout = batch.input_layout()};
      naming_sample_of(data, context.seed, batch, [&] { training_.trainable.predict(samples, outputs); });
      parts.take(shard.first_sample, shard.samples, outputs);
    }
    training_.enter(TrainingPhase::callbacks);
    sink(index * data.batch_size(), parts.tensors());
  }
}

}  // namespace holdfast
