// A single replica on a GPU needs no NCCL, which the machine may lack. Its collectives are those of the host, next to
// one check of the device's sum.

#include "collective/device_communicator.h"

#include <algorithm>

#include "collective/hosted_communicator.h"
#include "compute/cuda_library.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// A single rank has a single covering node, which is the sum already.
class LoneDeviceCommunicator final : public HostedCommunicator {
 public:
  LoneDeviceCommunicator(std::unique_ptr<Communicator> host, MemorySpace& memory, const DeviceCommunicatorShape& shape)
      : HostedCommunicator(std::move(host)), memory_(memory), shape_(shape) {
    for (int slot = 0; slot < shape.slots; ++slot) gradients_.push_back(memory.allocate(shape.gradient_floats));
  }

  std::vector<Slot> slots() override {
    std::vector<std::span<float>> gradients;
    for (const std::shared_ptr<float[]>& slot : gradients_) gradients.emplace_back(slot.get(), shape_.gradient_floats);
    return slots_with(gradients);
  }

  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override {
    HOLDFAST_ASSERT(covering_slots.size() == 1);
    const std::size_t gradients = shape_.gradient_floats;
    const std::span<const float> sum(gradients_[static_cast<std::size_t>(covering_slots[0])].get(), gradients);
    Sums sums = host().reduce(covering_slots, {.begin = 0, .end = shape_.tail_floats}, deadline);
    sums.gradients = sum;
    was_finite_ = host().was_finite();
    if (range.begin < gradients) {
      const std::size_t end = std::min(range.end, gradients);
      was_finite_ = memory_.is_finite(sum.subspan(range.begin, end - range.begin)) && was_finite_;
    }
    return sums;
  }

  bool was_finite() const override { return was_finite_; }
  // Nobody else has the arrays. The barrier only looks whether the generation still lives.
  void broadcast_arrays(std::span<const std::span<float>>, int, bool, Deadline deadline) override {
    host().barrier(deadline);
  }

 private:
  MemorySpace& memory_;
  const DeviceCommunicatorShape shape_;
  std::vector<std::shared_ptr<float[]>> gradients_;  // one array for each slot
  bool was_finite_ = true;
};

}  // namespace

// Only here the number of ranks decides which library is needed.
std::unique_ptr<Communicator> make_device_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                       const DeviceCommunicatorShape& shape) {
  if (host->size() == 1) return std::make_unique<LoneDeviceCommunicator>(std::move(host), memory, shape);
  return compute::cuda_library().make_communicator(std::move(host), memory, shape);
}

}  // namespace holdfast
