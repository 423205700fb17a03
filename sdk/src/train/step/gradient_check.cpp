// Two ranks that disagree cannot know which is right, so the step is computed again, by three ranks if there are as
// many. The majority of the second time is right, and whatever differed from it at either time was wrong. A rank that
// is wrong once is found in this way; one that is wrong each time, only among three. docs/decisions/wrong-numbers.md

#include "train/step/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/core/random.h"

namespace holdfast {
namespace {

// What one rank computed for the shards of an owner.
struct Opinion {
  int rank = 0;
  Digest digest{};
};

std::vector<Opinion> opinions_of(const std::vector<CheckReport>& reports, int owner, int recomputations) {
  const int size = static_cast<int>(reports.size());
  std::vector<Opinion> opinions = {{owner, reports[static_cast<std::size_t>(owner)].own}};
  for (int distance = 1; distance <= recomputations; ++distance) {
    // The inverse of rank_before(): these ranks computed the owner's shards.
    const int rank = (owner + distance) % size;
    opinions.push_back(
        {rank, reports[static_cast<std::size_t>(rank)].of_before[static_cast<std::size_t>(distance - 1)]});
  }
  return opinions;
}

std::ptrdiff_t votes_for(const Digest& digest, const std::vector<Opinion>& opinions) {
  return std::count_if(opinions.begin(), opinions.end(),
                       [&](const Opinion& opinion) { return opinion.digest == digest; });
}

// The digest of more than half of the opinions.
std::optional<Digest> majority_of(const std::vector<Opinion>& opinions) {
  for (const Opinion& opinion : opinions) {
    // More than half, and not the most: with two opinions that differ, neither may be believed.
    if (2 * votes_for(opinion.digest, opinions) > static_cast<std::ptrdiff_t>(opinions.size())) return opinion.digest;
  }
  return std::nullopt;
}

void add_wrong(const std::vector<Opinion>& opinions, int owner, const Digest& right, std::vector<WrongDigest>& wrong) {
  for (const Opinion& opinion : opinions) {
    if (opinion.digest == right) continue;
    wrong.push_back({.rank = opinion.rank, .owner = owner, .digest = opinion.digest, .right = right});
  }
}

}  // namespace

int checked_shards(const GradientChecks& checks, std::int64_t step) {
  if (checks.every == 0 || (step + 1) % checks.every != 0) return 0;
  return checks.shards == 0 ? std::numeric_limits<int>::max() : checks.shards;
}

std::vector<int> drawn_shards(std::uint64_t seed, std::int64_t step, ShardRange assigned, int count) {
  std::vector<int> shards(static_cast<std::size_t>(assigned.count()));
  std::iota(shards.begin(), shards.end(), assigned.begin);
  const std::size_t drawn = std::min(shards.size(), static_cast<std::size_t>(count));
  // Every rank draws for every other one, and no message says which shards are checked.
  Random random(seed, Purpose::gradient_check, static_cast<std::uint64_t>(step),
                static_cast<std::uint64_t>(assigned.begin));
  // The first draws of a Fisher-Yates shuffle.
  for (std::size_t i = 0; i < drawn; ++i) std::swap(shards[i], shards[i + random.below(shards.size() - i)]);
  shards.resize(drawn);
  // The digest of several shards depends on their order, which must not be that of the draw.
  std::sort(shards.begin(), shards.end());
  return shards;
}

int rank_before(int rank, int distance, int size) {
  return ((rank - distance) % size + size) % size;
}

int recomputations(bool is_repeated, int size) {
  return is_repeated && size > kMostRecomputations ? kMostRecomputations : 1;
}

void add_to_sum(const CheckReport& report, int recomputations, std::span<float> sum) {
  HOLDFAST_ASSERT(sum.size() == kCheckFloats);
  for (std::size_t i = 0; i < kCheckFloats; ++i) {
    // The owner counts as often as others computed its shards, so equal digests give zero. Numbers of some hundreds per
    // rank are exact in floats, in any order of the sum.
    int difference = recomputations * report.own.bytes[i];
    for (int distance = 1; distance <= recomputations; ++distance) {
      difference -= report.of_before[static_cast<std::size_t>(distance - 1)].bytes[i];
    }
    sum[i] += static_cast<float>(difference);
  }
}

bool is_agreed(std::span<const float> sum) {
  return std::all_of(sum.begin(), sum.end(), [](float value) { return value == 0.0F; });
}

bool CheckVerdict::is_wrong(int rank) const {
  return std::any_of(wrong.begin(), wrong.end(), [&](const WrongDigest& digest) { return digest.rank == rank; });
}

bool CheckVerdict::spares_somebody(int size) const {
  std::set<int> ranks;
  for (const WrongDigest& digest : wrong) ranks.insert(digest.rank);
  return static_cast<int>(ranks.size()) < size;
}

CheckVerdict judge(const std::vector<CheckReport>& first, const std::vector<CheckReport>& again) {
  HOLDFAST_ASSERT(first.size() == again.size() && !first.empty());
  const int size = static_cast<int>(first.size());
  CheckVerdict verdict;
  for (int owner = 0; owner < size; ++owner) {
    const std::vector<Opinion> opinions = opinions_of(again, owner, recomputations(true, size));
    const std::optional<Digest> right = majority_of(opinions);
    if (!right) {
      // Undecided for one owner is undecided for the step: no later owner can lower the kind again.
      verdict.kind = CheckVerdict::Kind::undecided;
      continue;
    }
    const bool is_unanimous = votes_for(*right, opinions) == static_cast<std::ptrdiff_t>(opinions.size());
    if (!is_unanimous) verdict.kind = std::max(verdict.kind, CheckVerdict::Kind::outvoted);
    // Both times: a rank that was wrong only once gave a wrong sum nevertheless.
    add_wrong(opinions_of(first, owner, recomputations(false, size)), owner, *right, verdict.wrong);
    add_wrong(opinions, owner, *right, verdict.wrong);
  }
  return verdict;
}

std::string describe(const std::vector<CheckReport>& reports, int recomputations) {
  std::string text;
  for (int owner = 0; owner < static_cast<int>(reports.size()); ++owner) {
    text += fmt::format("{}shards of rank {}:", owner == 0 ? "" : "; ", owner);
    for (const Opinion& opinion : opinions_of(reports, owner, recomputations)) {
      text += fmt::format(" rank {} computed {},", opinion.rank, opinion.digest.hex());
    }
    text.pop_back();
  }
  return text;
}

}  // namespace holdfast
