#pragma once

// The base of communicators whose arrays lie on a device. What concerns the host is passed on to the host's own
// communicator: small exchanges, barriers, and the end of a generation.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "holdfast/base/error.h"

namespace holdfast {

class HostedCommunicator : public Communicator {
 public:
  explicit HostedCommunicator(std::unique_ptr<Communicator> host) : host_(std::move(host)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override {
    host_->broadcast(parts, root, takes, deadline);
  }
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override {
    host_->gather_all(own, all, deadline);
  }
  void barrier(Deadline deadline) override { host_->barrier(deadline); }
  bool is_cancelled() const override { return host_->is_cancelled(); }

 protected:
  Communicator& host() const { return *host_; }
  // The tails of the host's slots, each with one of these gradients. The host may have more slots than the device.
  std::vector<Slot> slots_with(const std::vector<std::span<float>>& gradients) const {
    std::vector<Slot> slots = host_->slots();
    HOLDFAST_ASSERT(slots.size() >= gradients.size());
    slots.resize(gradients.size());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i].gradients = gradients[i];
    return slots;
  }

 private:
  const std::unique_ptr<Communicator> host_;
};

}  // namespace holdfast
