#pragma once

// The run's fixed choices, on which its bits depend: kept from its first start in RUN_DIRECTORY/run.json, and handed to
// every replica.

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
  int first_replicas = 1;         // what Reduction::fastest's bits depend on; others' do not
  bool shards_are_chosen = true;  // false: this first start took the number of replicas
};

// Those of the first start where there was one. Throws OtherChoices for options that contradict them,
// Error{invalid_file} where they cannot be read.
RunChoices settle_choices(const SuperviseOptions& options, int replicas);

// Writes them where nobody has yet, and throws OtherChoices where somebody has written others. Says in the log, where
// `tells`, that shards follow the number of replicas.
void record_choices(const SuperviseOptions& options, const RunChoices& choices, bool tells);

// Throws OtherChoices where the directory's choices are not these.
void require_recorded(const SuperviseOptions& options, const RunChoices& choices);

// Throws Error{invalid_argument} for impossible numbers.
void check_numbers(const RunChoices& choices, int replicas, int most_replicas);

// A start by the user. What becomes of the number of replicas afterwards is told in each generation.
void require_same_replicas(const RunChoices& choices, int replicas, const SuperviseOptions& options);

}  // namespace holdfast
