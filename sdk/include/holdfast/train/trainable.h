#pragma once

// What Holdfast needs from a model to mirror, save and recover its training. The layers of Holdfast are
// one implementation. An application that computes with another engine writes its own;
// examples/custom_trainable is a complete program. In outline:
//
//   class Line final : public Trainable {
//     void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override {
//       ...                                            // write sink.gradients() and sums
//       sink.ready(0, sink.gradients().size());
//     }
//     void apply_update(const Update& update) override { ... }   // the only function that changes the state
//   };
//
// The contract that makes a failure cost nothing: a step is a pure function of the state.
// compute_gradients() and compute_sums() depend on nothing but the state, the batch and the seed, and
// write only to their arguments. Only apply_update() changes the state, and it depends on nothing but
// the state and its argument. So a replica that repeats a step gets the same bits.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/base/best.h"
#include "holdfast/base/error.h"
#include "holdfast/compute/precision.h"
#include "holdfast/core/array_passes.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/core/row_layout.h"
#include "holdfast/core/shape.h"

namespace holdfast::compute {
class DeferredProducts;
}

namespace holdfast {

// What an array of the state is for: parameters are trained, buffers are kept up by layers (moving
// means), and slots belong to the optimizer.
enum class StateKind { parameter, buffer, optimizer_slot };

// One named array of the state. The Trainable owns the memory, which lies in memory() and never moves.
struct StateSpan {
  std::string name;  // unique, parts separated by '/': "model/conv2d/kernel", "optimizer/m/conv2d/kernel"
  StateKind kind = StateKind::parameter;  // see StateKind
  Shape shape;                            // of the array
  std::span<float> values;                // shape.element_count() of them, row-major
};

// The part of a global batch that one shard computes.
struct ShardBatch {
  int worker = 0;                   // in [0, Workers::count); calls of different workers run at once
  std::uint64_t seed = 0;           // of the run
  std::int64_t step = 0;            // updates before this batch
  std::int64_t first_sample = 0;    // position of the shard's first sample in the global batch
  std::int64_t samples = 0;         // of this shard; may be 0
  std::int64_t batch_samples = 0;   // of the global batch
  std::span<const float> features;  // [samples, feature shape], in the memory of the host
  std::span<const float> targets;   // [samples, target shape], in the memory of the host
  // How the arrays of a sample lie in a row of `features` or `targets`, for samples of other arrays than one
  // of f32; else null. Only if inputs() or targets() of the Trainable ask for such arrays.
  const RowLayout* input_layout = nullptr;
  const RowLayout* target_layout = nullptr;
  // If true, the last array of `targets` holds the weights of the samples, and the functions below write the
  // sum of these weights to the end of `sums`, which is one longer. Only if check_sample_weights() accepts.
  bool has_sample_weights = false;
  // Only for a Trainable with divisors of its own (divisor_count() above 0): the sums of what sum_divisors() wrote,
  // over the global batch. Empty where nothing of the results is kept.
  std::span<const float> divisors{};
  // If true, both lie in memory() instead. Only if reads_samples_on_device() returns true.
  bool is_on_device = false;
  // Throws if a replica was lost and this shard will be computed again. Call it now and then if a shard
  // takes longer than some milliseconds, and let the exception pass: the survivors continue when all
  // have left. Any thread may call it; it is never empty.
  std::function<void()> check_cancelled = [] {};
  // Names what this worker computes from here on, for a profile (profile.h): "dense: product". Empty if nobody asks.
  std::function<void(std::string_view part)> begin_part{};
};

// Where a shard writes its gradients. They are then added over all shards of the batch, in one fixed order.
class GradientSink {
 public:
  // What Holdfast asks for in this call. A Trainable may ignore all of it except on_ready, which ready() calls.
  struct Options {
    // Holdfast would check whether all gradients are finite; set_finite() spares that check.
    bool asks_if_finite = false;
    // Called by ready() on its thread: replicas add what is ready while the rest is computed. May
    // throw, which ends the shard.
    std::function<void(std::size_t begin, std::size_t end)> on_ready{};
    // The smallest range that is worth a call of ready().
    std::size_t least_floats = std::numeric_limits<std::size_t>::max();
    // For the layers of Holdfast: takes gradients that are left to the sum over the shards. Null where none may be
    // left.
    compute::DeferredProducts* deferred = nullptr;
  };

  // For Holdfast, and for tests of a Trainable.
  explicit GradientSink(std::span<float> gradients) : GradientSink(gradients, Options()) {}
  GradientSink(std::span<float> gradients, Options options) : gradients_(gradients), options_(std::move(options)) {}

  // gradient_count() floats in the memory() of the Trainable. Their content is undefined at first.
  std::span<float> gradients() { return gradients_; }
  // Declares the floats [begin, end) final; on a device, final once all work queued in memory() so far
  // is done. Declare each float exactly once. Throws Error{invalid_argument} for a range that is
  // reversed or too long, and Holdfast refuses a shard that leaves floats undeclared.
  void ready(std::size_t begin, std::size_t end) {
    if (begin > end || end > gradients_.size() || end - begin > gradients_.size() - ready_count_) {
      refuse_range(begin, end);
    }
    if (begin == end) return;
    ready_count_ += end - begin;
    if (options_.on_ready) options_.on_ready(begin, end);
  }
  // For a shard that calls ready() range by range: the least number of floats for one call.
  std::size_t least_floats() const { return options_.least_floats; }

  // See Options.
  compute::DeferredProducts* deferred() const { return options_.deferred; }

  // True if set_finite() would spare Holdfast a pass over all gradients. Calling set_finite() is optional.
  bool asks_if_finite() const { return options_.asks_if_finite; }
  // Whether all gradients that were written are finite.
  void set_finite(bool is_finite) { is_finite_ = is_finite; }

  // How many floats were declared so far.
  std::size_t ready_count() const { return ready_count_; }
  // What set_finite() was given; empty without it.
  std::optional<bool> is_finite() const { return is_finite_; }

 private:
  [[noreturn]] void refuse_range(std::size_t begin, std::size_t end) const;

  std::span<float> gradients_;
  Options options_;
  std::size_t ready_count_ = 0;
  std::optional<bool> is_finite_;
};

// How many calls run at once in this replica, and what each may use.
struct Workers {
  int count = 1;               // of shards that are computed at once
  int threads_per_shard = 1;   // on a CPU
  std::string device = "cpu";  // or "cuda:0"; all workers of a device share one memory space
  // As the options of the run say. arithmetic() must name it.
  Precision precision = Precision::f32;
};

// The sum of what all shards of a step wrote, in the fixed order.
struct Update {
  std::int64_t step = 1;             // number of this update, from 1
  std::int64_t batch_samples = 0;    // of the global batch
  std::span<const float> gradients;  // in the Trainable's memory()
  // With sample weights, their sum over the global batch. Shards scaled their gradients by 1 then, and the
  // update divides them by this weight. If it is 0, nothing is applied.
  bool is_weighted = false;
  float weight = 0;  // of the global batch, if is_weighted
  // What a callback set with TrainingContext::set_learning_rate(), in any step before, or what
  // GlobalBatch::rate_for_replicas makes of the rate; empty: the configuration's.
  std::optional<float> learning_rate{};
  // The threads that computed the shards, to share passes over arrays in the memory of the host.
  ArrayPasses passes = pass_alone;
};

// Functions are called from one thread at a time, except that calls of compute_gradients(),
// compute_sums() and predict() for different workers run at once.
class Trainable {
 public:
  virtual ~Trainable() = default;

  // What the bits of training depend on, as two JSON objects whose texts are always the same. This is the model alone,
  // from which a savepoint can be turned into a model again.
  virtual std::string graph() const = 0;
  // Everything else: optimizer, loss, metrics.
  virtual std::string configuration() const = 0;
  // What the bits depend on besides the options of the run: libraries and instruction set.
  virtual std::string arithmetic() const = 0;

  // The shapes of one sample.
  virtual Shape feature_shape() const = 0;
  virtual Shape target_shape() const = 0;
  virtual Shape output_shape() const = 0;

  // The arrays of one sample, for a Trainable that has several, or other types than f32. The defaults are one
  // f32 array of each shape above.
  virtual std::vector<ArraySpec> inputs() const { return {{.name = {}, .shape = feature_shape()}}; }
  // Likewise.
  virtual std::vector<ArraySpec> targets() const { return {{.name = {}, .shape = target_shape()}}; }
  // Likewise.
  virtual std::vector<ArraySpec> outputs() const { return {{.name = {}, .shape = output_shape()}}; }
  // Whether targets may have any type that samples can have, instead of those of targets().
  virtual bool converts_targets() const { return false; }
  // Throws Error{invalid_argument} unless samples may have weights of this shape. The default takes none.
  virtual void check_sample_weights(const ArraySpec& weights) const;
  // How many numbers a batch of such targets is divided by, where its samples or the sum of their weights are not all:
  // outputs with weights of their own, targets that a loss ignores. With the default 0 the update divides by these.
  // `targets` is null for one f32 array. At most 32, or twice the number of sums where that is more.
  virtual std::size_t divisor_count(const RowLayout* /*targets*/, bool /*has_sample_weights*/) const { return 0; }
  // Writes what this shard adds to the divisors. The first divides the first sum; where it is 0 over all shards,
  // nothing is applied. Called for each shard before compute_gradients() or compute_sums(), which find the sums over
  // all shards in ShardBatch::divisors and divide the gradients by them. The update does not divide then. From one
  // thread at a time.
  virtual void sum_divisors(const ShardBatch& /*batch*/, std::span<float> /*divisors*/) {}

  // Called before all functions below. Called again between steps if there may be more workers than
  // before, with the same number of threads for each.
  virtual void prepare(const Workers& workers) = 0;

  // Where the state and the gradients lie; called after prepare(). The memory space outlives all that
  // was allocated in it. The functions below may return before their work in it is done, but what they
  // write into the memory of the host is there when they return.
  virtual MemorySpace& memory() { return host_memory(); }

  // Whether the functions below take samples that lie in memory(), if that is not the memory of the host. If false,
  // samples always arrive in the memory of the host, even those of a data set that is kept on the device.
  virtual bool reads_samples_on_device() const { return false; }

  // Sets the state of step 0, a function of the seed.
  virtual void initialize(std::uint64_t seed) = 0;
  // All arrays of the state: always the same spans in the same order.
  virtual std::vector<StateSpan> state() = 0;

  // Names of the sums over samples: "loss" first, then the metrics.
  virtual std::vector<std::string> sum_names() const = 0;
  // Names of what is reported of the sums, and these numbers, for sums over all shards and steps. `weight`
  // is the number of samples, or the sum of their weights. The default reports the mean of each sum.
  virtual std::vector<std::string> result_names() const { return sum_names(); }
  // Whether lower or higher values of this result are better, for callbacks with Best::automatic; empty where nobody
  // can say. The default goes by the name: "loss", "..._loss" and errors are the better the lower, "accuracy", "auc"
  // and other well-known scores the higher.
  virtual std::optional<Best> best_of(const std::string& result_name) const;
  // A number for each of result_names(). The default divides each sum by `weight`.
  virtual std::vector<double> results(std::span<const double> sums, double weight) const;
  // The same for sums with divisors of their own, added over the same steps. The default divides by the first.
  virtual std::vector<double> results_by_divisors(std::span<const double> sums, std::span<const double> divisors) const;
  // Floats that each shard writes: the gradients, then everything else that is summed over shards (batch statistics).
  virtual std::size_t gradient_count() const = 0;
  // The most that gradient_count() becomes during a run. Only lay_out() changes it, so the default is gradient_count().
  virtual std::size_t most_gradients() const { return gradient_count(); }
  // For Holdfast's own models, whose arrays change with Trainer::compile(): gives the state the arrays that this text
  // describes, with undefined numbers, or for an empty text those of initialize(). The default throws
  // Error{incompatible} unless the text is empty.
  virtual void lay_out(const std::string& training);

  // Writes this shard's summand of the gradient of the global batch's mean loss: scale it by 1 /
  // batch_samples, or by 1 if the samples have weights. `sums` receives one sum over the samples of the shard
  // for each of sum_names(). A shard without samples writes zeros.
  virtual void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) = 0;
  // Inference: writes the sums only.
  virtual void compute_sums(const ShardBatch& batch, std::span<float> sums) = 0;
  // Inference: writes the outputs [samples, output shape], one output after another if there are several.
  virtual void predict(const ShardBatch& batch, std::span<float> outputs) = 0;

  // What is added to the mean loss of a batch, a function of the present parameters alone: the penalties of
  // regularizers. Called on each rank, once for a step or a batch that is evaluated. The gradient of it belongs to
  // apply_update().
  virtual double penalty() { return 0; }

  // The learning rate of update number `update` as the configuration says, for callbacks that ask; empty without one.
  virtual std::optional<float> learning_rate(std::int64_t /*update*/) const { return std::nullopt; }
  // Throws Error unless a callback may set this learning rate, which later updates then get. The default takes none.
  virtual void check_learning_rate(float rate) const;

  // Advances the state by one step. Not called while any other function runs.
  virtual void apply_update(const Update& update) = 0;

  // Whether updates keep moving averages of the parameters among the slots. If so, read_averages() says which of the
  // two compute_sums(), predict(), penalty() and on_fit_end() read from then on; at first, the parameters.
  virtual bool keeps_averages() const { return false; }
  // Reads the averages from here on, or the parameters again.
  virtual void read_averages(bool /*averages*/) {}

  // Called on every rank when a fit() is over, including one that had finished in an earlier start. A
  // model may hand out its weights here.
  virtual void on_fit_end() {}
};

}  // namespace holdfast
