#pragma once

// The watchdog's side of the arenas of one generation. It owns the memory, gives it to the ranks, and can end all
// waits in it.

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
  // Records that `rank` asks for its arena number `number`, of `bytes`, and shows `shown` to its peers, if that is
  // open. Returns nothing until all ranks have asked for that number. Then it returns one reply for each rank, or
  // errors. A reply has a descriptor for each rank, writable for the own one and read-only for the others, and then
  // the descriptors that all have shown.
  std::vector<Reply> request(int rank, int number, std::size_t bytes, FileDescriptor shown = {});

  // How often `rank` has signalled its peers, summed over all its arenas. A rank that hangs in a collective has the
  // lowest number.
  std::uint64_t arrivals(int rank) const;

  // Ends every wait on the first word of every arena. Returns refusals with Error{cancelled} for the ranks that wait
  // for an exchange. Later requests are refused in the same way.
  std::vector<Reply> cancel();

 private:
  struct Request {
    std::size_t bytes = 0;
    FileDescriptor shown{};
  };
  using ArenaRequests = std::vector<std::optional<Request>>;  // by rank; empty: it has not asked yet

  std::vector<Reply> answer(int number, const ArenaRequests& requests);
  std::vector<Reply> create(int number, const ArenaRequests& requests);
  std::vector<Reply> refuse(int number, ErrorCode code, const std::string& sentence) const;
  Reply cancelled(int rank, int number) const;

  int generation_;
  int replicas_;
  bool is_cancelled_ = false;
  std::map<int, ArenaRequests> wanted_;
  std::vector<SharedMemory> arenas_;  // one for each rank, exchange after exchange
};

}  // namespace holdfast::recovery
