// Splits what the ranks do between NCCL and the host's communicator. The tail of a reduction goes through the host
// after the gradients' sum is complete on this rank, so the tail's barrier also shows that it is complete on all ranks.
// See docs/decisions/nccl.md.

#include "collective/nccl/nccl_communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "collective/nccl/nccl_environment.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_library.h"

namespace holdfast {
namespace {

NcclExchangeShape exchange_shape(const Communicator& host, const DeviceCommunicatorShape& shape, NcclBounds bounds) {
  bounds.leaving = shape.leaving;
  // The longest that a rank waits for this device. The watchdog finds a replica that hangs on it earlier.
  bounds.training = shape.connect_timeout;
  return {.rank = host.rank(),
          .size = host.size(),
          .assignment = shape.assignment,
          .slots = shape.slots,
          .float_count = shape.gradient_floats,
          .library_order = shape.library_order,
          .bounds = std::move(bounds)};
}

// The part of the range within [begin, end), relative to begin.
FloatRange part_of(FloatRange range, std::size_t begin, std::size_t end) {
  const std::size_t from = std::clamp(range.begin, begin, end) - begin;
  return {from, std::max(from, std::clamp(range.end, begin, end) - begin)};
}

using DeviceName = std::array<char, 32>;

// Whether two ranks of one host use the same device.
bool is_a_device_shared(Communicator& host, const CollectiveStream& stream, const DeviceCommunicatorShape& shape,
                        Deadline deadline) {
  // Devices of two hosts may be at the same place.
  const std::string name = fmt::format("{}/{}", shape.host, stream.identity());
  // A fixed size, because gather_all() needs the same number of bytes from every rank.
  DeviceName own{};
  std::copy_n(name.begin(), std::min(name.size(), own.size()), own.begin());
  std::vector<DeviceName> all(static_cast<std::size_t>(host.size()));
  host.gather_all(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), deadline);
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) != all.end();
}

std::string process_name() {
  // Two hosts may have processes of one number.
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}-{}", host.data(), ::getpid());
}

// Without this library NCCL fails with a system error, for which the watchdog would try a new process in vain.
void require_nvml() {
  try {
    SharedLibrary::load("libnvidia-ml.so.1");
  } catch (const Error& error) {
    throw Error(
        ErrorCode::unavailable,
        fmt::format("replicas on GPUs cannot connect, because NCCL needs the driver's management library and it cannot "
                    "be loaded: {}; in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                    error.what()));
  }
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                   std::shared_ptr<CollectiveStream> stream, std::shared_ptr<NcclLibrary> library,
                                   const DeviceCommunicatorShape& shape, const NcclBounds& bounds)
    : HostedCommunicator(std::move(host)),
      shape_(shape),
      exchange_(exchange_shape(this->host(), shape, bounds), std::move(library), std::move(stream), this->host(),
                memory.allocate(exchange_shape(this->host(), shape, bounds).block_floats()),
                Deadline::after(shape.connect_timeout)) {}

std::vector<Slot> NcclCommunicator::slots() {
  return slots_with(exchange_.slots());
}

Sums NcclCommunicator::reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) {
  const std::size_t gradients = shape_.gradient_floats;
  HOLDFAST_ASSERT(range.begin <= range.end && range.end <= gradients + shape_.tail_floats);
  const FloatRange on_device = part_of(range, 0, gradients);
  const bool has_gradients = on_device.begin < on_device.end;
  Sums sums;
  if (has_gradients) sums.gradients = exchange_.reduce(covering_slots, on_device, deadline);
  const FloatRange in_tail = part_of(range, gradients, gradients + shape_.tail_floats);
  const std::span<const float> tail = host().reduce(covering_slots, in_tail, deadline).tail;
  // The host's sums are valid until its next call, which follows below.
  tail_.assign(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(shape_.tail_floats));
  sums.tail = tail_;
  was_finite_ = host().was_finite();
  if (has_gradients) was_finite_ = is_finite_everywhere(deadline) && was_finite_;
  return sums;
}

// Each rank has checked only the segment that it added.
bool NcclCommunicator::is_finite_everywhere(Deadline deadline) {
  const auto own = static_cast<std::byte>(exchange_.was_finite());
  std::vector<std::byte> all(static_cast<std::size_t>(size()));
  host().gather_all(std::span(&own, 1), all, deadline);
  return std::find(all.begin(), all.end(), std::byte{0}) == all.end();
}

void NcclCommunicator::broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes,
                                        Deadline deadline) {
  for (const std::span<float> array : arrays) exchange_.broadcast(array, root, takes, deadline);
}

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                     std::shared_ptr<CollectiveStream> stream,
                                                     const DeviceCommunicatorShape& shape) {
  const std::shared_ptr<NcclLibrary>& library = NcclLibrary::instance();
  require_nvml();
  set_nccl_environment(
      {.version = library->version(),
       .shares_device = is_a_device_shared(*host, *stream, shape, Deadline::after(shape.connect_timeout)),
       .is_one_host = shape.hosts == 1,
       .process_name = process_name()});
  return std::make_unique<NcclCommunicator>(std::move(host), memory, std::move(stream), library, shape);
}

}  // namespace holdfast
