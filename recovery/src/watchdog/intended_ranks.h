#pragma once

// The ranks for which the watchdog starts processes. Generations may give them others (decide/generations.cpp).

#include <map>
#include <optional>

#include "decide/supervisor.h"

namespace holdfast::recovery {

struct IntendedRank {
  int rank = 0;
  int local = 0;  // among the processes of its host
};

class IntendedRanks {
 public:
  // For a member that is about to start: the lowest rank that no other process has or is to have, and the lowest local
  // one for which no other process of its host was started. So exactly one process takes itself for the first.
  IntendedRank choose(const State& state, int member);
  // Nothing for a member that was not started, or is forgotten.
  std::optional<int> rank_of(int member) const;
  void forget_gone(const State& state);

 private:
  std::map<int, IntendedRank> by_member_;
};

}  // namespace holdfast::recovery
