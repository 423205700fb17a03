#pragma once

// A Link over UCX (openucx.org), to measure it at the seam that sums between hosts use. Its descriptor is always
// ready, so a rank that waits does not sleep: UCX moves bytes while its caller asks it to, and is fastest so.

#include <memory>

#include "collective/hosts/link.h"

namespace holdfast {

// Takes the place of `socket`, over which both ends first tell each other their addresses. Both sides have to call, in
// threads of their own, and each link belongs to the thread that made it. UCX_TLS and UCX_NET_DEVICES choose what
// carries the bytes; TCP where UCX_TLS is not set. Throws Error{unavailable} where UCX cannot begin.
//
// shut_down() ends this side alone, as soon as its thread next calls. The other side's is ended by its own agent.
std::unique_ptr<Link> ucx_link(std::unique_ptr<Link> socket);

}  // namespace holdfast
