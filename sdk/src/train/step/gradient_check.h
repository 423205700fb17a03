#pragma once

// Whether gradients are right: in some steps each rank computes shards of the rank before it once more, and the two
// compare what they got. Here is which shards, what of it is told, and who is believed; StepRunner computes. All of it
// is a function of the run's seed, the step, the deal of shards and the digests.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collective/shard_tree.h"
#include "holdfast/base/digest.h"
#include "holdfast/train/trainer.h"

namespace holdfast {

// How many of each rank's shards are computed twice in the step behind `step` updates: none, or, every so many steps
// and the first time in the last of the first so many, as many as asked for.
int checked_shards(const GradientChecks& checks, std::int64_t step);

// `count` of the shards that one rank was dealt, or all when it has fewer, in ascending order; each is equally likely.
std::vector<int> drawn_shards(std::uint64_t seed, std::int64_t step, ShardRange dealt, int count);

// The rank whose shards `rank` computes once more: `distance` places before it, in a ring.
int rank_before(int rank, int distance, int size);

inline constexpr int kMostRecomputations = 2;

// How many ranks compute a drawn shard beside its owner: one, and, when that disagreed, two where there are as many.
int recomputations(bool is_repeated, int size);

// What one rank computed: digests over gradients and sums of all shards that were drawn of a rank.
struct CheckReport {
  Digest own{};                                         // of its own shards
  std::array<Digest, kMostRecomputations> of_before{};  // of those of the rank before it, and of the one before that
};

inline constexpr std::size_t kCheckFloats = sizeof(Digest::bytes);

// Adds, per byte, what all ranks together sum to zero where they agree: sums over shards are exact for numbers as
// small, so that the reduction itself compares. That several disagreements cancel in each of the bytes is as unlikely
// as two digests that are equal by chance.
void add_to_sum(const CheckReport& report, int recomputations, std::span<float> sum);
bool is_agreed(std::span<const float> sum);

struct WrongDigest {
  int rank = 0;   // who computed it
  int owner = 0;  // whose shards they were
  Digest digest{};
  Digest right{};
};

struct CheckVerdict {
  enum class Kind {
    agreed,     // all got the same the second time
    outvoted,   // wherever not, two of three did
    undecided,  // somewhere there is no majority
  };
  Kind kind = Kind::agreed;
  // Of both times, where it is known what is right.
  std::vector<WrongDigest> wrong;

  bool is_wrong(int rank) const;
  // Some, but not all ranks: so that one who leaves leaves somebody with the state.
  bool spares_somebody(int size) const;
};

// Of the reports of all ranks by rank, when they disagreed and when they then computed the step again.
CheckVerdict judge(const std::vector<CheckReport>& first, const std::vector<CheckReport>& again);

// "of rank 0 rank 0 computed 0123..., rank 1 computed 4567...; of rank 1 ..."
std::string describe(const std::vector<CheckReport>& reports, int recomputations);

}  // namespace holdfast
