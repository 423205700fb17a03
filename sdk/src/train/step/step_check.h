#pragma once

// The gradient check of one step: which shards are computed twice, and what each computation gave.

#include <cstddef>
#include <optional>
#include <vector>

#include "data/batches/batch_loader.h"
#include "holdfast/base/digest.h"
#include "train/step/gradient_check.h"

namespace holdfast {

struct StepCheck {
  // A shard of a rank before this one, computed here once more.
  struct Recomputation {
    int distance = 1;                       // from that rank to this one, see rank_before()
    std::optional<LoadedShards> samples{};  // empty: those of the batch that is being computed
    std::size_t index = 0;                  // of the run's shard among these samples
    Digest digest{};
  };

  int recomputations = 1;           // by other ranks than the owner
  std::vector<int> own;             // drawn shards of this rank
  std::vector<Digest> own_digests;  // by local shard; only those of the drawn shards are defined
  std::vector<Recomputation> others;

  // What this rank computed. `first_shard` is its first one.
  CheckReport report(int first_shard) const;
};

}  // namespace holdfast
