#pragma once

// At most one frame to each host, and at most one from each: a barrier, a gathering, a piece of a broadcast.

#include <optional>
#include <vector>

#include "collective/hosts/lane.h"

namespace holdfast {

class OneFrameTask final : public LaneTask {
 public:
  // `index` is that of the frames, in both directions.
  OneFrameTask(int hosts, FrameKind kind, std::uint32_t index = 0)
      : kind_(kind), index_(index), out_(static_cast<std::size_t>(hosts)), in_(static_cast<std::size_t>(hosts)) {}

  // Both may be called once for each host, before the task runs.
  void send_to(int host, ConstFrameBody body) { out_[static_cast<std::size_t>(host)] = std::move(body); }
  void receive_from(int host, FrameBody body) { in_[static_cast<std::size_t>(host)] = std::move(body); }

  std::optional<OutgoingFrame> next_for(int host) override;
  bool has_sent_all(int host) const override { return !out_[static_cast<std::size_t>(host)]; }
  std::optional<FrameBody> place_for(int host, const Frame& frame) override;
  void take(int host, const Frame& frame) override;
  bool has_received_all(int host) const override { return !in_[static_cast<std::size_t>(host)]; }

 private:
  const FrameKind kind_;
  const std::uint32_t index_;
  std::vector<std::optional<ConstFrameBody>> out_;  // by host; empty once it is on its way
  std::vector<std::optional<FrameBody>> in_;        // by host; empty once it has arrived
};

}  // namespace holdfast
