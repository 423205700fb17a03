#pragma once

// The fixed choices of a run, on which its bits depend. They are recorded in RUN_DIRECTORY/run.json at its first
// start, and passed to every replica.

#include <cstdint>
#include <string>

#include "holdfast/train/reduction.h"
#include "holdfast/train/supervise.h"

namespace holdfast {

struct RunChoices {
  std::uint64_t seed = 0;
  int shards = 1;
  int threads_per_shard = 1;
  Reduction reduction = Reduction::shard_order;
  int first_replicas = 1;         // with Reduction::fastest the bits depend on it
  bool shards_are_chosen = true;  // false: this first start used the number of replicas
};

// The choices of the run's first start; for a new run those of `options`. Throws OtherChoices for options that
// contradict the recorded choices, Error{invalid_file} when these cannot be read.
RunChoices settle_choices(const SuperviseOptions& options, int replicas);

// Records them unless they are recorded already. Throws OtherChoices when others are recorded. With `tells`, a line
// in the log says when shards follow the number of replicas.
void record_choices(const SuperviseOptions& options, const RunChoices& choices, bool tells);

// Throws OtherChoices when other choices are recorded in the directory.
void require_recorded(const SuperviseOptions& options, const RunChoices& choices);

// Throws Error{invalid_argument} for impossible numbers.
void check_numbers(const RunChoices& choices, int replicas, int most_replicas);

// For a start by the user: throws OtherChoices when the run's bits depend on its number of replicas and this is
// another number, unless the options accept that. Later changes of the number are logged in each generation.
void require_same_replicas(const RunChoices& choices, int replicas, const SuperviseOptions& options);

}  // namespace holdfast
