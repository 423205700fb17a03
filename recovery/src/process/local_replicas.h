#pragma once

// Replicas as processes of this host: each with a channel, a life page and a process descriptor, whose events come as
// callbacks on the thread that runs the io_context.

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "memory/fence.h"
#include "process/replica_process.h"

namespace holdfast::recovery {

// The replicas inherit `lock`, a descriptor of the run directory's lock, which stays open in this process as long as
// the starter. `when_sweeper_lost` is called when the process that ends what replicas leave has died (sweeper.h).
// Throws Error when that process cannot be started. Its destructor ends all that the replicas have started.
//
// `fence` is that of this host, and outlives the starter. Null: the run has a single host.
std::unique_ptr<ReplicaStarter> local_replicas(boost::asio::io_context& io, int lock,
                                               std::function<void()> when_sweeper_lost, const Fence* fence = nullptr);

}  // namespace holdfast::recovery
