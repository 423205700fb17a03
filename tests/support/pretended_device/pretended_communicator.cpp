// Ready gradients are copied when they are declared ready, and reduce() takes these copies. So a gradient that changes
// after it was declared ready gives a wrong sum here, as it would with NCCL.

#include "pretended_communicator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collective/memory/ordered_add.h"
#include "collective/shard_tree.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {
namespace {

// Names a file of this process that other processes of the same user can open.
struct Shown {
  int process = 0;
  int descriptor = 0;
};

class PretendedCommunicator final : public Communicator {
 public:
  PretendedCommunicator(std::unique_ptr<Communicator> host, PretendedMemory& memory,
                        const DeviceCommunicatorShape& shape)
      : host_(std::move(host)),
        memory_(memory),
        shape_(shape),
        program_(program_of(shape)),
        result_(memory.allocate(shape.gradient_floats)),
        shared_bytes_(shape.gradient_floats * static_cast<std::size_t>(shape.slots) * sizeof(float)),
        own_(SharedMemory::create("pretended-wire", shared_bytes_)) {
    for (int slot = 0; slot < shape.slots; ++slot) gradients_.push_back(memory.allocate(shape.gradient_floats));
    const ShardTree tree(shape.assignment.shards());
    for (int rank = 0; rank < shape.assignment.ranks(); ++rank)
      nodes_.push_back(tree.covering_nodes(shape.assignment.of(rank)).size());
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  std::vector<Slot> slots() override {
    std::vector<Slot> slots = host_->slots();
    slots.resize(gradients_.size());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i].gradients = {gradients_[i].get(), shape_.gradient_floats};
    return slots;
  }

  // Small, so that the models of tests have several buckets.
  std::size_t bucket_floats() const override { return 64; }
  // Sends the gradients as they are now: a later change is lost.
  void mark_ready(std::span<const int> covering_slots, FloatRange range) override {
    show(covering_slots, range);
    ready_floats_ += range.end - range.begin;
  }
  void begin_reduce(std::span<const int>, Deadline) override {
    HOLDFAST_ASSERT(ready_floats_ == shape_.gradient_floats);
    has_begun_ = true;
  }

  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override {
    bool is_finite = true;
    if (range.begin < shape_.gradient_floats) {
      connect(deadline);
      is_finite =
          reduce_gradients(covering_slots, {range.begin, std::min(range.end, shape_.gradient_floats)}, deadline);
    }
    Sums sums = host_->reduce(covering_slots, {.begin = 0, .end = shape_.tail_floats}, deadline);
    sums.gradients = {result_.get(), shape_.gradient_floats};
    was_finite_ = is_finite && host_->was_finite();
    return sums;
  }

  bool was_finite() const override { return was_finite_; }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override {
    host_->broadcast(parts, root, takes, deadline);
  }
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override {
    connect(deadline);
    for (const std::span<float> array : arrays) {
      HOLDFAST_ASSERT(array.size_bytes() <= shared_bytes_);
      if (rank() == root) memory_.copy_to_host(array, floats_of(own_.writable()).first(array.size()));
      host_->barrier(deadline);
      const std::span<const float> shown(wire(root), array.size());
      if (rank() != root && takes) memory_.copy_from_host(shown, array);
      host_->barrier(deadline);
    }
  }
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override {
    host_->gather_all(own, all, deadline);
  }
  void barrier(Deadline deadline) override { host_->barrier(deadline); }
  bool is_cancelled() const override { return host_->is_cancelled(); }

 private:
  static std::vector<SumInstruction> program_of(const DeviceCommunicatorShape& shape) {
    const std::vector<ShardRange> nodes = shape.assignment.covering_nodes();
    if (!shape.library_order) return sum_program(ShardTree(shape.assignment.shards()), nodes);
    std::vector<SumInstruction> program(nodes.size(), SumInstruction::push);
    program.resize(2 * nodes.size() - 1, SumInstruction::add);
    return program;
  }

  static std::span<float> floats_of(std::span<std::byte> bytes) {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  // Not in the constructor, because waiting for peers needs a deadline.
  void connect(Deadline deadline) {
    if (!peers_.empty()) return;
    const Shown own{.process = ::getpid(), .descriptor = own_.descriptor()};
    std::vector<Shown> all(static_cast<std::size_t>(size()));
    // gather_all() overwrites the slots, but their tails are still needed.
    std::vector<std::vector<float>> tails;
    for (const Slot& slot : host_->slots()) tails.emplace_back(slot.tail.begin(), slot.tail.end());
    host_->gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), deadline);
    for (std::size_t i = 0; i < tails.size(); ++i)
      std::copy(tails[i].begin(), tails[i].end(), host_->slots()[i].tail.begin());
    for (const Shown& shown : all) {
      const std::string path = fmt::format("/proc/{}/fd/{}", shown.process, shown.descriptor);
      FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file.is_open()) throw GenerationEnded("a peer is gone: " + path);
      peers_.push_back(SharedMemory::map_read_only(std::move(file), shared_bytes_));
    }
  }

  const float* wire(int rank) const {
    return reinterpret_cast<const float*>(peers_[static_cast<std::size_t>(rank)].readable().data());
  }

  void show(std::span<const int> covering_slots, FloatRange range) {
    const std::size_t floats = range.end - range.begin;
    for (std::size_t node = 0; node < covering_slots.size(); ++node) {
      const float* const gradients = gradients_[static_cast<std::size_t>(covering_slots[node])].get();
      memory_.copy_to_host({gradients + range.begin, floats},
                           floats_of(own_.writable()).subspan(node * shape_.gradient_floats + range.begin, floats));
    }
  }

  bool reduce_gradients(std::span<const int> covering_slots, FloatRange range, Deadline deadline) {
    const std::size_t floats = shape_.gradient_floats;
    if (!has_begun_) show(covering_slots, {0, floats});
    has_begun_ = false;
    ready_floats_ = 0;
    host_->barrier(deadline);
    std::vector<const float*> leaves;
    for (int rank = 0; rank < size(); ++rank) {
      for (std::size_t node = 0; node < nodes_[static_cast<std::size_t>(rank)]; ++node)
        leaves.push_back(wire(rank) + node * floats);
    }
    std::vector<float> sum(range.end - range.begin);
    const bool is_finite = add_in_order(program_, leaves, range, sum.data());
    memory_.copy_from_host(sum, {result_.get() + range.begin, sum.size()});
    host_->barrier(deadline);
    return is_finite;
  }

  const std::unique_ptr<Communicator> host_;
  PretendedMemory& memory_;
  const DeviceCommunicatorShape shape_;
  const std::vector<SumInstruction> program_;
  std::vector<std::size_t> nodes_;  // of each rank
  std::vector<std::shared_ptr<float[]>> gradients_;
  const std::shared_ptr<float[]> result_;
  const std::size_t shared_bytes_;
  SharedMemory own_;
  std::vector<SharedMemory> peers_;  // by rank
  std::size_t ready_floats_ = 0;
  bool has_begun_ = false;
  bool was_finite_ = true;
};

}  // namespace

std::unique_ptr<Communicator> make_pretended_communicator(std::unique_ptr<Communicator> host, PretendedMemory& memory,
                                                          const DeviceCommunicatorShape& shape) {
  return std::make_unique<PretendedCommunicator>(std::move(host), memory, shape);
}

}  // namespace holdfast
