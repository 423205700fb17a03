#pragma once

// Trains, evaluates and applies one model on the replicas of a run. All ranks make the same calls in the same order.
// One Trainer holds the whole state of a run: when the run directory has a savepoint, the first call continues from it;
// fit() and evaluate() calls that had finished there return their recorded results at once.
//
// The first call of any function of a Trainer joins the other replicas. A spare waits there, and so has all behind it
// that a program does before (reading data, building the model), and with fit() or evaluate() a trial of the first
// batch: the first step of its life takes no longer than any other.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"
#include "holdfast/nn/loss.h"
#include "holdfast/nn/metric.h"
#include "holdfast/nn/sequential.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/callback.h"
#include "holdfast/train/replica.h"
#include "holdfast/train/trainable.h"

namespace holdfast {

// Holds a copy of any metric.
class MetricHandle {
 public:
  MetricHandle(const Metric& metric) : metric_(metric.clone()) {}  // NOLINT(google-explicit-constructor)
  const std::shared_ptr<const Metric>& get() const { return metric_; }

 private:
  std::shared_ptr<const Metric> metric_;
};

// What becomes of a step whose loss, gradients or other sums are NaN or infinite, and of parameters and optimizer slots
// that are so before they are to be kept in a snapshot or a savepoint.
enum class WhenNotFinite {
  roll_back,  // all replicas go back to the last state that they agreed on; the second time at one step they stop
  stop,       // Error{not_finite}, which ends the run
  skip_step,  // nothing is applied; the step counts, and the epoch's means leave its samples out. All go back from a
              // state, as above
  go_on,      // applied, and kept, as it is
};

// Gradients that are wrong but finite are found by computing shards twice, on two replicas, and comparing digests
// before anything is applied. Who was wrong is found by computing the step again, which changes no bit of the run, and
// is replaced. One replica compares with itself, and finds only what is wrong for a moment.
struct GradientChecks {
  // Steps from one check to the next; 0: never. With one shard a replica the default costs about 0.2 % of the time: a
  // step with a check takes up to twice as long, and other replicas' samples have to be loaded for it.
  std::int64_t every = 500;
  // How many shards of each replica are computed twice in such a step; 0: all.
  int shards = 1;
};

struct FitOptions {
  std::int64_t epochs = 1;
  std::optional<Dataset> validation{};  // evaluated behind each epoch as "val_..."
  // Allow validation on samples that are trained on. Otherwise fit() throws Error{invalid_argument} where a sample of
  // one source can be among both, in any epoch, as by take() or skip() after shuffle(). One source is the same data
  // set, the same tensors, or a file that is read twice: samples that map() makes of numbers come from one file where
  // the maps have one name. Copies of a part of them are not noticed.
  bool accept_shared_samples = false;
  std::vector<CallbackHandle> callbacks{};
  WhenNotFinite when_not_finite = WhenNotFinite::roll_back;
  // Needs what a Trainable promises, and map() functions of a Dataset too: that who computes again gets the same bits.
  GradientChecks check_gradients{};
};

struct FitResult {
  Logs results;               // of the last epoch
  std::vector<Logs> history;  // one entry an epoch
};

class Trainer {
 public:
  // `model` and the rest are copied. The initial weights are the model's own where it has weights, else drawn from the
  // run's seed. Throws Error{invalid_argument} when shapes do not fit, when two metrics have one name or a name that is
  // taken ("loss", "val_loss"), when a cross-entropy cannot be meant for the activation of the last layer
  // (crossentropy_options.h), and when a configuration() is not JSON. The first call of a function below throws
  // Error{incompatible} naming each option that differs from those of the run that is resumed.
  Trainer(Replica& replica, const Sequential& model, const Optimizer& optimizer, const Loss& loss,
          const std::vector<MetricHandle>& metrics = {});
  // Trains an application's own model, which must outlive the Trainer.
  Trainer(Replica& replica, Trainable& model);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // `data` must be batched. Blocks until training is over; its savepoints are durable then, on whichever rank it
  // returns, and `model` and its copies have the trained weights. A supervised run's directory has a savepoint of the
  // final state by then, whether or not a callback asked for one. If rank 0 is lost while it writes the last ones, the
  // others go back to a state before the end and train to it once more. Options that make no sense are refused with
  // Error{invalid_argument} before the first step, and also on a run that has finished: too few epochs, validation on
  // samples that are trained on, a name that a callback monitors() and no epoch logs.
  FitResult fit(const Dataset& data, const FitOptions& options = {});

  // Means over the data set by name. `data` must be batched.
  Logs evaluate(const Dataset& data);

  // Outputs [n, output shape] of features [n, feature shape], in inference mode, computed by this rank alone.
  Tensor predict(const Tensor& features, std::int64_t batch_size = 256);

  // Updates applied since the start of the run.
  std::int64_t step() const;
  // Digest of the parameters in their natural layout and order, without padding (base/digest.h).
  Digest weights_digest() const;
  // Writes a savepoint of the present state; returns when it is durable, with the file's digest. Any rank may call it
  // alone.
  Digest save(const std::string& path) const;

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

// The base model in a savepoint, with its weights. Throws Error{invalid_file} for a file that is damaged,
// Error{unsupported} for one that holds an application's own model.
Sequential load_model(const std::string& path);

}  // namespace holdfast
