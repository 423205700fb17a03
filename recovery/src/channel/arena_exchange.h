#pragma once

// The watchdog's part in shared arenas of one generation: it owns the memory, hands it out, and ends all waits in it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "channel/channel.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

class ArenaExchange {
 public:
  ArenaExchange(int generation, int replicas);

  struct Reply {
    int rank = 0;
    Message message;
  };
  // Notes that `rank` wants its `number`th arena, of `bytes`, and shows `shown` to its peers, where that is open. Empty
  // until all ranks have asked for that number; then one reply for each of them: its own descriptor at its rank's
  // place, writable, those of its peers read-only, and behind them what all have shown; or an error.
  std::vector<Reply> request(int rank, int number, std::size_t bytes, FileDescriptor shown = {});

  // How often `rank` has counted its words up, in all its arenas. A rank that hangs in a collective is behind.
  std::uint64_t arrivals(int rank) const;

  // Ends every wait on the first word of every arena, and returns refusals with Error{cancelled} for the ranks that
  // wait for an exchange. A request that comes later is refused so, too.
  std::vector<Reply> cancel();

 private:
  struct Request {
    std::size_t bytes = 0;
    FileDescriptor shown{};
  };
  using Requests = std::vector<std::optional<Request>>;  // by rank; empty: has not asked

  std::vector<Reply> answer(int number, const Requests& requests);
  std::vector<Reply> create(int number, const Requests& requests);
  std::vector<Reply> refuse(int number, ErrorCode code, const std::string& sentence) const;
  Reply cancelled(int rank, int number) const;

  int generation_;
  int replicas_;
  bool is_cancelled_ = false;
  std::map<int, Requests> wanted_;
  std::vector<SharedMemory> arenas_;  // one of each rank in turn
};

}  // namespace holdfast::recovery
