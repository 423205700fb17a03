#pragma once

// The options of Trainer::fit() (trainer.h).

#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/train/callback.h"
#include "holdfast/train/global_batch.h"
#include "holdfast/train/step_checks.h"

namespace holdfast {

// What fit() does. Name the options at the call: {.epochs = 5, .validation = test.batch(256)}.
struct FitOptions {
  std::int64_t epochs = 1;              // of this call
  std::optional<Dataset> validation{};  // evaluated after epochs; its results are logged as "val_..."
  // Evaluates `validation` after each k-th epoch only: with 3 after the epochs 2, 5, 8, counted from 0. Other
  // epochs log no "val_..."; callbacks of Holdfast that watch one do nothing in them.
  std::int64_t validation_every = 1;
  // Makes an epoch of so many steps; 0: of one pass over the data. The next epoch goes on where this one
  // ends, and after the last batch the next pass begins, with its own shuffle and draws. So each pass has
  // each sample once, and the batch is a function of the step. At 0 a run writes the savepoints it always did.
  std::int64_t steps_per_epoch = 0;
  // Makes one step of so many consecutive batches: their gradients are added, and the update divides by
  // their samples (or weights) together. The memory for activations is that of one batch. Each batch is cut
  // into as many shards as without this option. The bits are those of a batch k times as large in a run with
  // k times the shards. A power of two costs no memory for gradients but some blocks for sums; other numbers
  // need the blocks of the sums, and of what ranks exchange, twice. What counts batches counts steps then:
  // batches_per_epoch(), steps_per_epoch, check_gradients.every. The last step of a pass may have fewer samples;
  // BatchOptions::drop_remainder leaves it out.
  std::int64_t accumulate = 1;
  // Whether the batch of a step follows the number of replicas (global_batch.h); by default it does not. With
  // BatchPolicy::per_replica the data's batch(n), times `accumulate`, is what each replica adds to a step. A step has
  // that times the number of replicas, cut into the shards of the run as always, and an epoch has each sample once
  // through all changes. batches_per_epoch() is a forecast then. The last step of a pass may have fewer samples;
  // drop_remainder leaves out what does not fill the batch of one replica.
  GlobalBatch global_batch = GlobalBatch();  // {} makes g++ 12 warn in programs of users
  // The weight of each class, by its number; empty: none. For training alone: validation is not weighted.
  // A sample counts in the loss, and in metrics, with the weight of its class, times its own weight if it
  // has one, and a batch is divided by the sum of these weights. The class is the target of the sample, a
  // whole number or a one-hot row as long as this list:
  //
  //   .class_weights = balanced_class_weights(training)   // or {1, 3}: class 1 counts three times as much
  //
  // fit() throws Error{invalid_argument} for weights that are negative or not finite, several targets, and
  // keep_on_device(); and, when it reads the sample, for a class without a weight, naming the sample.
  std::vector<float> class_weights{};
  // Allows validation on samples that are trained on. By default fit() throws Error{invalid_argument}
  // if one sample of a source can be in both data sets, in any epoch, as with take() or skip() after
  // shuffle(). The source is the same if both come from one data set, from equal tensors or from files
  // with equal content. Sources of sample numbers count as one file if the map() functions that read
  // the samples have the same name. Copies of single samples are not noticed.
  bool accept_shared_samples = false;
  // Called in this order.
  std::vector<CallbackHandle> callbacks{};
  // What becomes of a step whose loss or gradients are NaN or infinite (step_checks.h).
  WhenNotFinite when_not_finite = WhenNotFinite::roll_back;
  // Relies on what a Trainable and the map() functions of a Dataset promise: a second computation has the same bits.
  GradientChecks check_gradients{};
};

}  // namespace holdfast
