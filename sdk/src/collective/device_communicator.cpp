#include "collective/device_communicator.h"

#include <algorithm>

#include "compute/cuda_library.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// A single rank has a single covering node, which is the sum already.
class LoneDeviceCommunicator final : public Communicator {
 public:
  LoneDeviceCommunicator(std::unique_ptr<Communicator> host, MemorySpace& memory, const DeviceCommunicatorShape& shape)
      : host_(std::move(host)), memory_(memory), shape_(shape) {
    for (int slot = 0; slot < shape.slots; ++slot) gradients_.push_back(memory.allocate(shape.gradient_floats));
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  std::vector<Slot> slots() override {
    std::vector<Slot> slots = host_->slots();
    slots.resize(gradients_.size());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i].gradients = {gradients_[i].get(), shape_.gradient_floats};
    return slots;
  }

  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override {
    HOLDFAST_ASSERT(covering_slots.size() == 1);
    const std::size_t gradients = shape_.gradient_floats;
    const std::span<const float> sum(gradients_[static_cast<std::size_t>(covering_slots[0])].get(), gradients);
    Sums sums = host_->reduce(covering_slots, {.begin = 0, .end = shape_.tail_floats}, deadline);
    sums.gradients = sum;
    was_finite_ = host_->was_finite();
    if (range.begin < gradients) {
      const std::size_t end = std::min(range.end, gradients);
      was_finite_ = memory_.is_finite(sum.subspan(range.begin, end - range.begin)) && was_finite_;
    }
    return sums;
  }

  bool was_finite() const override { return was_finite_; }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override {
    host_->broadcast(parts, root, takes, deadline);
  }
  void broadcast_arrays(std::span<const std::span<float>>, int, bool, Deadline deadline) override {
    host_->barrier(deadline);
  }
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override {
    host_->gather_all(own, all, deadline);
  }
  void barrier(Deadline deadline) override { host_->barrier(deadline); }
  bool is_cancelled() const override { return host_->is_cancelled(); }

 private:
  const std::unique_ptr<Communicator> host_;
  MemorySpace& memory_;
  const DeviceCommunicatorShape shape_;
  std::vector<std::shared_ptr<float[]>> gradients_;  // one array for each slot
  bool was_finite_ = true;
};

}  // namespace

std::unique_ptr<Communicator> make_device_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                       const DeviceCommunicatorShape& shape) {
  if (host->size() == 1) return std::make_unique<LoneDeviceCommunicator>(std::move(host), memory, shape);
  return compute::cuda_library().make_communicator(std::move(host), memory, shape);
}

}  // namespace holdfast
