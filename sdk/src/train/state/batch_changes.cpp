#include "train/state/batch_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/file_system.h"
#include "train/state/snapshot.h"
#include "train/state/train_state.h"

namespace holdfast {

int replicas_at(const std::vector<BatchChange>& changes, std::int64_t step) {
  const auto later = std::ranges::upper_bound(changes, step, {}, &BatchChange::step);
  return later == changes.begin() ? 0 : (later - 1)->replicas;
}

void note_replicas(std::vector<BatchChange>& changes, std::int64_t step, int replicas) {
  // Later ones are of a run whose step was set back, as `holdfast convert` does.
  while (!changes.empty() && changes.back().step >= step) changes.pop_back();
  if (changes.empty() || changes.back().replicas != replicas) changes.push_back({.step = step, .replicas = replicas});
}

std::string problem_of_replay(const std::vector<BatchChange>& replay) {
  std::int64_t before = -1;
  for (const BatchChange& change : replay) {
    if (change.replicas < 1) return fmt::format("it has {} replicas at step {}", change.replicas, change.step);
    if (change.step < 0) return fmt::format("it has the step {}", change.step);
    if (change.step <= before) return fmt::format("step {} comes after step {}", change.step, before);
    before = change.step;
  }
  return {};
}

std::string contradiction_of(const std::vector<BatchChange>& recorded, const std::vector<BatchChange>& replay,
                             std::int64_t step) {
  if (recorded.empty()) return {};
  // Between two entries of either list both stay as they are, so it is enough to look where one of them changes.
  for (const std::vector<BatchChange>* list : {&recorded, &replay}) {
    for (const BatchChange& change : *list) {
      if (change.step < recorded.front().step || change.step >= step) continue;
      const int was = replicas_at(recorded, change.step);
      const int wanted = replicas_at(replay, change.step);
      if (was == wanted) continue;
      return fmt::format("the step after {} updates had the batch of {} replicas, and the list has {}", change.step,
                         was, wanted);
    }
  }
  return {};
}

std::vector<BatchChange> recorded_batches(const std::string& path) {
  const TrainState state = train_state_from_json(read_metadata(posix_file_system(), path), path);
  std::vector<BatchChange> all;
  for (const CallRecord& call : state.calls) {
    if (!call.per_replica) continue;
    for (const BatchChange& change : call.per_replica->changes) {
      // A call that ended before it made a step has an entry for the first step of the next one.
      while (!all.empty() && all.back().step >= change.step) all.pop_back();
      all.push_back(change);
    }
  }
  return all;
}

}  // namespace holdfast
