#pragma once

// The ranks for which the watchdog starts processes. Generations may give them others (decide/generations.cpp).

#include <map>
#include <optional>
#include <set>

#include "decide/supervisor.h"

namespace holdfast::recovery {

struct IntendedRank {
  int rank = 0;
  int local = 0;  // among the processes of its host
};

// How many of `replicas` are planned on a host. Hosts take turns, as in device slots (watchdog_options.h).
int replicas_planned_on(int host, int hosts, int replicas);

class IntendedRanks {
 public:
  // For a member that is about to start: the lowest rank that no other process has or is to have. Ranks for which other
  // hosts start processes later are left to them.
  //
  // The local rank is one for which no other process of its host was started: the lowest for a replica, and the lowest
  // from replicas_planned_on() on for a spare. A replica that takes the place of one of another host may have such a
  // one, too. A process that was killed keeps neither.
  IntendedRank choose(const State& state, int member);
  // Nothing for a member that was not started, or is forgotten.
  std::optional<int> rank_of(int member) const;
  void forget_gone(const State& state);

 private:
  std::set<int> local_ranks_of(const State& state, int host, int except) const;
  int count_to_come(const State& state, int host, int except) const;

  std::map<int, IntendedRank> by_member_;
};

}  // namespace holdfast::recovery
