#pragma once

// What Holdfast needs of a model to mirror, save and recover its training. Holdfast's own layers are one
// implementation; an application that computes with another engine writes its own (see examples/custom_trainable).
//
// The contract that makes a failure cost nothing: a step is a pure function of the state. compute_gradients() and
// compute_sums() change nothing but what they are given to write, and depend on nothing but the state, the batch and
// the seed; only apply_update() changes the state, and it depends on nothing but the state and its argument. Whoever
// repeats a step gets the same bits.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/compute/precision.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/core/shape.h"

namespace holdfast {

enum class StateKind { parameter, buffer, optimizer_slot };

// One named array of the state, in memory() that the Trainable owns and keeps at this place.
struct StateSpan {
  std::string name;  // unique, parts separated by '/': "model/conv2d/kernel", "optimizer/m/conv2d/kernel"
  StateKind kind = StateKind::parameter;
  Shape shape;
  std::span<float> values;  // shape.element_count() of them, row-major
};

// The part of a global batch that one shard computes.
struct ShardBatch {
  int worker = 0;                   // below Workers::count; calls with different workers run at once
  std::uint64_t seed = 0;           // of the run
  std::int64_t step = 0;            // number of updates before this batch
  std::int64_t first_sample = 0;    // position of the shard's first sample in the global batch
  std::int64_t samples = 0;         // of this shard; may be 0
  std::int64_t batch_samples = 0;   // of the global batch
  std::span<const float> features;  // [samples, feature shape], in the host's memory
  std::span<const float> targets;   // [samples, target shape], likewise
  // Both lie in memory() instead; only where reads_samples_on_device().
  bool is_on_device = false;
  // Throws when a replica was lost, so that this shard will be computed again: call it now and then where a shard takes
  // longer than some milliseconds, and let the exception through. The survivors go on together when all have left. Any
  // thread; never empty.
  std::function<void()> check_cancelled = [] {};
};

// Where a shard's gradients go. What is written here is added over all shards of the batch in one fixed order.
class GradientSink {
 public:
  struct Wishes {
    // To be told whether all of them are finite; nobody needs to tell.
    bool asks_if_finite = false;
    // Called by ready(), on its thread: replicas add what is ready while the rest is being computed. May throw, which
    // ends the shard.
    std::function<void(std::size_t begin, std::size_t end)> on_ready{};
    // What it makes sense to declare at a time, at the least.
    std::size_t least_floats = std::numeric_limits<std::size_t>::max();
  };

  explicit GradientSink(std::span<float> gradients) : GradientSink(gradients, Wishes()) {}
  GradientSink(std::span<float> gradients, Wishes wishes) : gradients_(gradients), wishes_(std::move(wishes)) {}

  // gradient_count() floats in the Trainable's memory(), with undefined content.
  std::span<float> gradients() { return gradients_; }
  // Floats [begin, end) are final; on a device, once all that has been queued in memory() by now is done. Each float is
  // declared once; a shard that leaves any undeclared is refused with Error{invalid_argument}, as is a range that is
  // none, or more than was left.
  void ready(std::size_t begin, std::size_t end) {
    if (begin > end || end > gradients_.size() || end - begin > gradients_.size() - ready_count_) {
      throw Error(ErrorCode::invalid_argument, "compute_gradients() declared floats " + std::to_string(begin) + " to " +
                                                   std::to_string(end) + " of " + std::to_string(gradients_.size()) +
                                                   " ready, behind " + std::to_string(ready_count_) +
                                                   " others; declare each of them once, from begin up to end");
    }
    if (begin == end) return;
    ready_count_ += end - begin;
    if (wishes_.on_ready) wishes_.on_ready(begin, end);
  }
  // At a time, if they are ready by and by; of no meaning for who declares all at once.
  std::size_t least_floats() const { return wishes_.least_floats; }

  // Whether it spares somebody a look at all of them to be told that they are finite; nobody needs to tell.
  bool asks_if_finite() const { return wishes_.asks_if_finite; }
  void set_finite(bool is_finite) { is_finite_ = is_finite; }

  std::size_t ready_count() const { return ready_count_; }
  // Empty where nobody has told.
  std::optional<bool> is_finite() const { return is_finite_; }

 private:
  std::span<float> gradients_;
  Wishes wishes_;
  std::size_t ready_count_ = 0;
  std::optional<bool> is_finite_;
};

// How many calls run at once in this replica, and with how many threads each computes.
struct Workers {
  int count = 1;
  int threads_per_shard = 1;
  std::string device = "cpu";  // "cuda:0"; workers of a device share its memory space, and there is one
  // As the options say; f32 on CPUs. arithmetic() names what was taken.
  Precision precision = Precision::f32;
};

// The order-fixed sum over all shards of what they wrote.
struct Update {
  std::int64_t step = 1;             // number of this update, from 1
  std::int64_t batch_samples = 0;    // of the global batch
  std::span<const float> gradients;  // in the Trainable's memory()
};

class Trainable {
 public:
  virtual ~Trainable() = default;

  // What the bits of a training run depend on, as deterministic JSON objects: the model alone ("graph", kept in
  // savepoints so that the model can be rebuilt from one) and everything else (optimizer, loss, ...).
  virtual std::string graph() const = 0;
  virtual std::string configuration() const = 0;
  // What the bits depend on outside the run's options: libraries, instruction set.
  virtual std::string arithmetic() const = 0;

  // Per sample.
  virtual Shape feature_shape() const = 0;
  virtual Shape target_shape() const = 0;
  virtual Shape output_shape() const = 0;

  // Called before any other of the functions below, and again, between steps, when there may be more workers than
  // before; with the same threads for each.
  virtual void prepare(const Workers& workers) = 0;

  // Where its state and its gradients lie; not before prepare(). Outlives all that was allocated in it. Functions below
  // may return before their work in it is done; what they write into the host's memory is there on return.
  virtual MemorySpace& memory() { return host_memory(); }

  // Whether the functions below take samples that lie in memory(), where that is not the host's. Others get them in the
  // host's memory, also of a data set that is kept on the device.
  virtual bool reads_samples_on_device() const { return false; }

  // Sets the state of step 0, a function of the seed.
  virtual void initialize(std::uint64_t seed) = 0;
  // Always the same spans in the same order.
  virtual std::vector<StateSpan> state() = 0;

  // Names of what is summed over samples and reported as mean: "loss" first, then metrics.
  virtual std::vector<std::string> sum_names() const = 0;
  // Floats that each shard writes: gradients, then whatever else is to be summed over shards (batch statistics).
  virtual std::size_t gradient_count() const = 0;

  // The gradient of the global batch's mean loss has this shard's part as summand: scale by 1 / batch_samples. `sums`
  // gets one sum over the shard's samples for each of sum_names(). A shard without samples writes zeros.
  virtual void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) = 0;
  // Inference: sums only.
  virtual void compute_sums(const ShardBatch& batch, std::span<float> sums) = 0;
  // Inference: outputs [samples, output shape].
  virtual void predict(const ShardBatch& batch, std::span<float> outputs) = 0;

  virtual void apply_update(const Update& update) = 0;

  // Called on every rank when a fit() is over, also one that had finished in an earlier start: for a model that hands
  // its weights out.
  virtual void on_fit_end() {}
};

}  // namespace holdfast
