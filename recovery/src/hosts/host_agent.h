#pragma once

// What a run does on one of its hosts: it starts processes there, owns the memory that they share, and watches devices.
// It decides nothing. The head, which decides, knows this interface alone. local_host.h has the agent of the head's own
// host, agents/remote_host.h those of other hosts. docs/decisions/agents.md

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu_watch.h"
#include "holdfast/recovery/memory_snapshot.h"
#include "links/link_peer.h"
#include "process/replica_process.h"

namespace holdfast::recovery {

// For the thread that made it. It outlives all processes that it has started.
class HostAgent {
 public:
  struct Generation {
    int number = 0;
    std::vector<int> members{};     // by rank, of all hosts
    std::vector<int> shards{};      // by rank; empty: assigned evenly
    bool may_use_snapshots = true;  // rank 0 gets the snapshots in memory, to look for a state
    // In a generation over several hosts. The ranks of a host follow one another.
    std::vector<int> hosts{};       // of each rank; empty: all members are on this host
    int host = 0;                   // the number of this one, which has members
    std::vector<LinkPeer> peers{};  // the others, in the order of their ranks
  };

  // This host and `peer` have no connection for the generation. Its members here wait until it is ended.
  using OnUnreached = std::function<void(int generation, int peer, const std::string& why)>;

  virtual ~HostAgent() = default;

  // As ReplicaStarter::start(). Messages that ask for memory are answered here; `handlers` gets all others.
  virtual std::shared_ptr<ReplicaProcess> start(const ReplicaStarter::Program& program,
                                                ReplicaStarter::Handlers handlers) = 0;
  // Tells each member its rank. From now on members may ask for arenas of this generation, and no other.
  virtual void open_generation(const Generation& generation) = 0;
  // Ends all waits in the arenas of the newest generation.
  virtual void cancel_generation() = 0;
  // Without it, members fail that need such a connection.
  virtual void when_unreached(OnUnreached handler) = 0;
  // How often the member has signalled its peers; 0 unless it is in the newest generation.
  virtual std::uint64_t arrivals(int member) const = 0;
  // The newest snapshot in memory; valid until the next call that is not const.
  virtual std::optional<MemorySnapshots::Whole> newest_snapshot() const = 0;
  // Throws Error where the devices cannot be watched.
  virtual void watch_devices(const std::vector<int>& cuda_numbers, GpuWatch::Handlers handlers) = 0;
  virtual void stop_watching_devices() = 0;
};

}  // namespace holdfast::recovery
