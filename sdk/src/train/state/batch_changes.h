#pragma once

// The list of changes of the batch under BatchPolicy::per_replica, as pure functions. A list has each number of
// replicas once for as long as it holds: steps grow, and numbers that follow one another differ. So two runs that
// took the same steps have the same list, however often a generation ended between two steps.
// docs/decisions/batch-size.md

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/train/global_batch.h"

namespace holdfast {

// The number of replicas that the step after `step` updates has its batch for; 0 before the first entry.
int replicas_at(const std::vector<BatchChange>& changes, std::int64_t step);

// Notes that from here on the batch is that of so many replicas; no step after `step` updates was made yet.
void note_replicas(std::vector<BatchChange>& changes, std::int64_t step, int replicas);

// What is wrong with a list that is to be replayed; empty if nothing is.
std::string problem_of_replay(const std::vector<BatchChange>& replay);

// Where a list that is replayed differs from what was recorded up to `step` updates; empty if it does not.
std::string contradiction_of(const std::vector<BatchChange>& recorded, const std::vector<BatchChange>& replay,
                             std::int64_t step);

}  // namespace holdfast
