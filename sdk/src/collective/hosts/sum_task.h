#pragma once

// What one rank does of a sum over hosts: it sends each other host that host's part of the partial sums, adds its own
// host's part of all partial sums as they arrive, sends the sums, and receives those of the other parts.
//
// Everything is cut into pieces. A piece is added as soon as it has arrived from all hosts, and its sum is on its way
// while later pieces are still being received. There is room for a few pieces of each host; a host that is ahead waits.

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/communicator.h"
#include "collective/hosts/host_layout.h"
#include "collective/hosts/host_sums.h"
#include "collective/hosts/lane.h"

namespace holdfast {

class SumTask final : public LaneTask {
 public:
  struct Options {
    int own_host = 0;
    FloatRange range;                  // of the block, that this lane adds
    std::size_t piece_floats = 0;      // the same on all ranks
    std::vector<const float*> leaves;  // of the own host, each a whole block
    float* sums = nullptr;             // where the sum of `range` goes
  };
  // Memory that the tasks of a lane use again.
  struct Room {
    std::vector<std::vector<float>> arrived;  // by host
    std::vector<std::vector<float>> leaving;  // by host
  };
  // The layout, the programs and the room must outlive the task.
  SumTask(const HostLayout& layout, const HostSums& programs, Room& room, Options options);

  // Whether the whole range is, once the task is complete.
  bool is_finite() const { return is_finite_ && are_others_finite_; }

  std::optional<OutgoingFrame> next_for(int host) override;
  bool has_sent_all(int host) const override;
  std::optional<FrameBody> place_for(int host, const Frame& frame) override;
  void take(int host, const Frame& frame) override;
  bool has_received_all(int host) const override;

 private:
  // How far the exchange with a host has got. Counts are of frames.
  struct Progress {
    FloatRange part;             // the floats of the block that the host adds
    std::uint32_t pieces = 0;    // of its part
    std::uint32_t partials = 0;  // of each piece, that the host sends
    std::uint32_t values_sent = 0;
    std::uint32_t values_received = 0;
    std::uint32_t sums_sent = 0;
    std::uint32_t sums_received = 0;
  };

  Progress& of(int host) { return progress_[static_cast<std::size_t>(host)]; }
  const Progress& of(int host) const { return progress_[static_cast<std::size_t>(host)]; }
  const Progress& own() const { return of(options_.own_host); }
  FloatRange piece(const Progress& host, std::uint32_t number) const;
  float* sum_at(std::size_t place) const { return options_.sums + (place - options_.range.begin); }
  float* arrived(int host, std::uint32_t value);
  ConstFrameBody partial(int host, std::uint32_t number, FloatRange range);
  std::uint32_t expected_bytes(int host, const Frame& frame) const;
  bool has_arrived(std::uint32_t piece) const;
  void add_what_has_arrived();
  void add(std::uint32_t piece);

  const HostLayout& layout_;
  const HostSums& programs_;
  Room& room_;
  const Options options_;
  std::vector<Progress> progress_;  // by host
  std::uint32_t added_ = 0;         // pieces of the own part
  bool is_finite_ = true;           // what this rank has added
  bool are_others_finite_ = true;
};

}  // namespace holdfast
