#pragma once

// Finds replicas that compute more slowly than the others, and writes them to the journal. Returns events that make the
// supervisor do what the run's options say: assign shards differently, or replace the replica.

#include <map>
#include <optional>
#include <vector>

#include "decide/shard_assigner.h"
#include "decide/stragglers.h"
#include "decide/supervisor.h"
#include "holdfast/base/recovery_options.h"
#include "holdfast/recovery/replica_work.h"
#include "journal/journal.h"

namespace holdfast::recovery {

class SlowReplicas {
 public:
  // The journal must outlive it.
  SlowReplicas(WhenSlow when_slow, Journal& journal) : when_slow_(when_slow), journal_(journal) {}

  // `action` is the one that opens the generation. `step` is the step of the run.
  void generation_opened(const Action& action, std::int64_t step, Moment now);
  // A worker reports what it computes. Throws Error{invalid_argument} for impossible numbers. A report about another
  // generation than the newest is dropped.
  void work_reported(int member, int generation, const ReplicaWork& work);
  // What the member computes in the newest generation; empty until it has reported it.
  std::optional<ReplicaWork> work_of(int member) const;

  // `loads` are those of the newest generation, by rank. Returns the events for the supervisor.
  std::vector<Event> look(const std::vector<Load>& loads, std::int64_t step, Moment now);
  // The events of replicas that are slow, where the options say to replace them. Asked for once more when a spare gets
  // ready, which could now replace them.
  std::vector<Event> slow_ones() const;

 private:
  void write_down(std::int64_t step);
  void write_down_assignment(const Action& action);
  std::optional<Event> propose_assignment(const std::vector<Load>& loads, std::int64_t step, Moment now);

  const WhenSlow when_slow_;
  Journal& journal_;
  Stragglers stragglers_{Stragglers::Options{}};
  ShardAssigner assigner_{ShardAssigner::Options{}};

  // These belong to the newest generation.
  int generation_ = -1;
  std::vector<int> members_;                         // by rank
  std::vector<int> shards_;                          // by rank; empty: the program assigns them
  std::map<int, ReplicaWork> work_;                  // by member
  bool has_proposed_ = false;                        // another assignment
  std::optional<ShardAssigner::Proposal> proposal_;  // the last one
};

}  // namespace holdfast::recovery
