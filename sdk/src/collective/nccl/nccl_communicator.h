#pragma once

// The communicator of a generation whose arrays lie on GPUs. NCCL moves gradients and arrays from device to device; all
// else goes through the host's own communicator.
//
// reduce() returns on no rank before the sum is complete on all of them. A rank that applies the sum thus knows that
// every other rank got it without an error. No flag on the device has to hold an update back.
// See docs/decisions/nccl.md.

#include <memory>
#include <vector>

#include "collective/device_communicator.h"
#include "collective/hosted_communicator.h"
#include "collective/nccl/nccl_exchange.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {

class NcclCommunicator final : public HostedCommunicator {
 public:
  // `host` has blocks that consist of the tail alone. `memory` is the memory of the stream's device and must outlive
  // the communicator. Connects NCCL within shape.connect_timeout.
  NcclCommunicator(std::unique_ptr<Communicator> host, MemorySpace& memory, std::shared_ptr<CollectiveStream> stream,
                   std::shared_ptr<NcclLibrary> library, const DeviceCommunicatorShape& shape,
                   const NcclBounds& bounds = {});

  std::vector<Slot> slots() override;
  std::size_t bucket_floats() const override { return exchange_.bucket_floats(); }
  void mark_ready(std::span<const int>, FloatRange range) override { exchange_.mark_ready(range); }
  void begin_reduce(std::span<const int> covering_slots, Deadline deadline) override {
    exchange_.begin_reduce(covering_slots, deadline);
  }
  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override;
  bool was_finite() const override { return was_finite_; }
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override;

 private:
  bool is_finite_everywhere(Deadline deadline);

  const DeviceCommunicatorShape shape_;
  NcclExchange exchange_;
  std::vector<float> tail_;
  bool was_finite_ = true;
};

// Uses the NCCL of this machine, and sets its environment before its first use. Throws Error{unavailable} if NCCL or
// the driver's management library is missing.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                     std::shared_ptr<CollectiveStream> stream,
                                                     const DeviceCommunicatorShape& shape);

}  // namespace holdfast
