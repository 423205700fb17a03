#pragma once

// A small model and data set that train quickly, and their results, for tests that compare whole trainings.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"
#include "support/thread_replica.h"

namespace holdfast {

// They have all whose bits could depend on the number of replicas: dropout, batch statistics, a short last batch.
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
// Each has a learning rate that changes with every step, and clips most gradients.
std::vector<std::shared_ptr<const Optimizer>> clipping_optimizers();
// The model learns nothing, but is evaluated all the same.
Outcome train_without_parameters(Replica& replica);
std::vector<Outcome> outcomes_of(const ThreadRun& run, const std::function<Outcome(Replica&)>& train);

// Makes callbacks for each rank, since processes have callbacks of their own.
using MakeCallbacks = std::function<std::vector<CallbackHandle>()>;

std::vector<CallbackHandle> no_callbacks();
std::vector<CallbackHandle> checkpoint();
std::vector<CallbackHandle> checkpoint_every_two();

// The outcome on rank 0.
Outcome outcome_of(const ThreadRun& run, const MakeCallbacks& callbacks = no_callbacks);

void expect_equal(const Outcome& left, const Outcome& right);

std::vector<std::string> savepoint_files(const std::string& folder);

}  // namespace holdfast
