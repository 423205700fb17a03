#pragma once

#include "reduction_hosts.h"

namespace holdfast {

// Cancels so many collectives between hosts at random moments, and prints how long all ranks took to leave. Returns
// whether all left within the limit and no descriptor was left open.
bool measure_cancels(const HostsBenchmark& options, int cancels);

}  // namespace holdfast
