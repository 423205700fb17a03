#pragma once

// What fit() and evaluate() refuse before their first step, each with Error{invalid_argument} that says what to write.

#include <string>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/train/trainable.h"
#include "holdfast/train/trainer.h"

namespace holdfast {

// The weights that this fit() validates, and gives to the model at its end: averages if a callback asks for them.
Weights weights_to_validate(const FitOptions& options);

// Refuses two sums of one name, since one would be lost. Also refuses a metric with the name of the loss or of a sum of
// the validation.
void require_distinct_sums(const std::vector<std::string>& names);

// Refuses a data set that is not batched, is empty, or does not fit the model. `purpose` is "fit()" or the like.
void require_fitting_data(const Dataset& data, const Trainable& trainable, const char* purpose);
// The same without a look at the targets.
void require_fitting_inputs(const Dataset& data, const Trainable& trainable, const char* purpose);

// Refuses options of fit() that make no sense: too few epochs, callbacks of one name, names that no epoch logs,
// negative numbers, averages that the optimizer does not keep, validation on samples that are trained on. A batch of
// the run has so many shards.
void require_sensible_options(const Dataset& data, const FitOptions& options, const Trainable& trainable, int shards);

// Refuses a BatchNormalization on shards of one sample each, which trains nothing. With `warns`, the log says where
// some shards have one.
void require_rows_to_normalize(const Dataset& data, const Trainable& trainable, int shards, bool warns);

// Says in the log where all layers with weights are frozen.
void warn_of_nothing_to_train(const Trainable& trainable);

}  // namespace holdfast
