#pragma once

// Whether gradients are right: in some steps each rank computes shards of the rank before it once more, and the two
// results are compared. This file decides which shards are drawn, what is exchanged, and which rank is believed;
// CheckedStep does the work. All of it is a function of the run's seed, the step, the assignment of shards and the
// digests. docs/decisions/wrong-numbers.md

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/shard_tree.h"
#include "data/batches/batch_loader.h"
#include "holdfast/base/digest.h"
#include "holdfast/train/step_checks.h"

namespace holdfast {

// How many of each rank's shards are computed twice in the step that follows `step` updates. In steps number
// checks.every, 2 * checks.every and so on, counted from 1, it is checks.shards, or the largest int for all shards. In
// other steps it is 0.
int checked_shards(const GradientChecks& checks, std::int64_t step);

// `count` of the shards that are assigned to one rank, or all if it has fewer, in ascending order. Each is equally
// likely.
std::vector<int> drawn_shards(std::uint64_t seed, std::int64_t step, ShardRange assigned, int count);

// The rank whose shards `rank` computes once more: `distance` ranks before it, in a ring.
int rank_before(int rank, int distance, int size);

inline constexpr int kMostRecomputations = 2;

// How many ranks compute a drawn shard besides its owner: one. In a repeated step it is two if there are three ranks or
// more.
int recomputations(bool is_repeated, int size);

// What one rank computed. Each digest is over the gradients and sums of all shards that were drawn of one rank.
struct CheckReport {
  Digest own{};                                         // of its own shards
  std::array<Digest, kMostRecomputations> of_before{};  // of shards of the rank before it, and of the rank before that
};

inline constexpr std::size_t kCheckFloats = sizeof(Digest::bytes);

// Adds a number for each byte, so that the sum over all ranks is zero if they agree. Floats add numbers as small as
// these exactly, so the reduction itself compares. That several disagreements cancel in each of the bytes is as
// unlikely as two digests that are equal by chance.
void add_to_sum(const CheckReport& report, int recomputations, std::span<float> sum);
bool is_agreed(std::span<const float> sum);

struct WrongDigest {
  int rank = 0;   // that computed it
  int owner = 0;  // whose shards these are
  Digest digest{};
  Digest right{};
};

struct CheckVerdict {
  enum class Kind {
    agreed,     // all computed the same the second time
    outvoted,   // where they did not, two of three agreed
    undecided,  // for some shards no digest has a majority
  };
  Kind kind = Kind::agreed;
  // The wrong digests of both times, for shards whose right digest is known.
  std::vector<WrongDigest> wrong;

  bool is_wrong(int rank) const;
  // Whether some rank computed nothing wrongly, so that the state survives when the wrong ranks leave.
  bool spares_somebody(int size) const;
};

// Judges the reports of all ranks, by rank: of the `first` time, when they disagreed, and of the step computed `again`.
CheckVerdict judge(const std::vector<CheckReport>& first, const std::vector<CheckReport>& again);

// "shards of rank 0: rank 0 computed 0123..., rank 1 computed 4567...; shards of rank 1: ..."
std::string describe(const std::vector<CheckReport>& reports, int recomputations);

// The check of one step: which shards are computed twice, and what each computation gave.
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
