#pragma once

// Looks for replicas that compute more slowly than the others, writes them down, and tells the supervisor of what the
// run's options want to be done about them.

#include <map>
#include <optional>
#include <vector>

#include "decide/shard_dealer.h"
#include "decide/stragglers.h"
#include "decide/supervisor.h"
#include "holdfast/recovery/watchdog.h"
#include "holdfast/recovery/worker.h"
#include "journal/journal.h"

namespace holdfast::recovery {

class SlowReplicas {
 public:
  // The journal outlives it.
  SlowReplicas(WhenSlow when_slow, Journal& journal) : when_slow_(when_slow), journal_(journal) {}

  // `action` opens it. `step` is the run's.
  void generation_opened(const Action& action, std::int64_t step, Moment now);
  // Throws Error{invalid_argument} where that cannot be. What is said of another generation than the newest is dropped.
  void work_reported(int member, int generation, const Worker::Work& work);
  // What the member does in the newest generation; nothing before it has said so.
  std::optional<Worker::Work> work_of(int member) const;

  // `loads` are those of the newest generation, by rank. Returns the events that follow.
  std::vector<Event> look(const std::vector<Load>& loads, std::int64_t step, Moment now);
  // Those that are slow, once more: a spare could take their place.
  std::vector<Event> on_spare_ready() const;

 private:
  void write_down(std::int64_t step);
  void write_down_deal(const Action& action);
  std::vector<Event> slow_ones() const;
  std::optional<Event> propose_deal(const std::vector<Load>& loads, std::int64_t step, Moment now);

  const WhenSlow when_slow_;
  Journal& journal_;
  Stragglers stragglers_{Stragglers::Options{}};
  ShardDealer dealer_{ShardDealer::Options{}};

  // Of the newest generation.
  int generation_ = -1;
  std::vector<int> members_;                   // by rank
  std::vector<int> shards_;                    // by rank; empty: as the program deals them
  std::map<int, Worker::Work> work_;           // by member
  bool has_proposed_ = false;                  // another deal
  std::optional<ShardDealer::Deal> proposal_;  // the last one
};

}  // namespace holdfast::recovery
