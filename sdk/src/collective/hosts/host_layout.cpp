#include "collective/hosts/host_layout.h"

#include <fmt/format.h>
#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {

// Counts come from a message of another process, so they do not meet an assertion.
HostLayout::HostLayout(const std::vector<int>& counts) : boundaries_{0} {
  if (counts.empty()) throw Error(ErrorCode::invalid_argument, "a generation was described that has no host");
  for (const int count : counts) {
    if (count <= 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a generation was described whose host {} has {} ranks; leave out hosts without ranks",
                              boundaries_.size() - 1, count));
    }
    boundaries_.push_back(boundaries_.back() + count);
  }
}

int HostLayout::host_of(int rank) const {
  HOLDFAST_ASSERT(rank >= 0 && rank < ranks());
  const auto end = std::upper_bound(boundaries_.begin(), boundaries_.end(), rank);
  return static_cast<int>(end - boundaries_.begin()) - 1;
}

int HostLayout::lanes() const {
  int fewest = ranks();
  for (int host = 0; host < hosts(); ++host) fewest = std::min(fewest, ranks_of(host));
  return fewest;
}

}  // namespace holdfast
