#pragma once

// A model and data that are quick to train on, and what came of it: for tests that compare whole trainings.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"
#include "support/thread_replica.h"

namespace holdfast {

// Everything whose bits could depend on the number of replicas: dropout, batch statistics, a last batch that is short.
Sequential small_model();
Dataset small_data(std::int64_t samples = 53);

struct Outcome {
  std::string digest;
  std::int64_t step = 0;
  Logs results;
  Logs evaluation;
  std::vector<Logs> history;
};

Outcome train_small(Replica& replica, std::vector<CallbackHandle> callbacks = {}, std::int64_t epochs = 2);
Outcome train_with(Replica& replica, const Optimizer& optimizer, std::vector<CallbackHandle> callbacks = {});
// Each with a schedule that changes all the time, and clipping gradients that are mostly too large for it.
std::vector<std::shared_ptr<const Optimizer>> clipping_optimizers();
// It learns nothing, and is judged all the same.
Outcome train_without_parameters(Replica& replica);
std::vector<Outcome> outcomes_of(const ThreadRun& run, const std::function<Outcome(Replica&)>& train);

// Each rank has callbacks of its own, as processes do.
using MakeCallbacks = std::function<std::vector<CallbackHandle>()>;

std::vector<CallbackHandle> no_callbacks();
std::vector<CallbackHandle> checkpoint();
std::vector<CallbackHandle> checkpoint_every_two();

// That of rank 0.
Outcome outcome_of(const ThreadRun& run, const MakeCallbacks& callbacks = no_callbacks);

void expect_equal(const Outcome& left, const Outcome& right);

std::vector<std::string> savepoint_files(const std::string& folder);

}  // namespace holdfast
