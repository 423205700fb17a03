#include "pretended_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{1} << 30;
constexpr std::size_t kAlignment = 4096;

}  // namespace

PretendedMemory::PretendedMemory(int device) : device_(device) {
  void* const region = ::mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) throw system_error(errno, "mapping a pretended device's memory failed");
  region_ = static_cast<std::byte*>(region);
}

PretendedMemory::~PretendedMemory() {
  ::munmap(region_, kRegionBytes);
}

void PretendedMemory::protect(int protection) const {
  if (used_ == 0) return;
  if (::mprotect(region_, used_, protection) != 0) throw system_error(errno, "mprotect failed");
}

PretendedMemory::Access::Access(PretendedMemory& memory) : memory_(memory) {
  if (memory_.accesses_++ == 0) memory_.protect(PROT_READ | PROT_WRITE);
}

PretendedMemory::Access::~Access() {
  if (--memory_.accesses_ == 0) memory_.protect(PROT_NONE);
}

// Fresh pages are zero.
std::shared_ptr<float[]> PretendedMemory::allocate(std::size_t floats) {
  const std::size_t bytes = (floats * sizeof(float) + kAlignment) / kAlignment * kAlignment;
  if (bytes > kRegionBytes - used_) {
    throw Error(ErrorCode::out_of_memory, device() + " has " + std::to_string(kRegionBytes - used_) +
                                              " bytes left, and " + std::to_string(bytes) + " were asked for");
  }
  auto* const first = reinterpret_cast<float*>(region_ + used_);
  used_ += bytes;
  return {first, [](float*) {}};
}

void PretendedMemory::copy_to_host(std::span<const float> from, std::span<float> to) {
  copy(from, to);
}

void PretendedMemory::copy_from_host(std::span<const float> from, std::span<float> to) {
  copy(from, to);
}

void PretendedMemory::copy(std::span<const float> from, std::span<float> to) {
  const Access access(*this);
  host_memory().copy(from, to);
}

void PretendedMemory::gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) {
  const Access access(*this);
  host_memory().gather(from, rows, to);
}

void PretendedMemory::add(std::span<const float> summand, std::span<float> sum) {
  const Access access(*this);
  host_memory().add(summand, sum);
}

bool PretendedMemory::is_finite(std::span<const float> array) {
  const Access access(*this);
  return host_memory().is_finite(array);
}

void PretendedMemory::fill_zero(std::span<float> array) {
  const Access access(*this);
  host_memory().fill_zero(array);
}

Digest PretendedMemory::digest_of(std::span<const std::span<const float>> arrays) {
  const Access access(*this);
  return host_memory().digest_of(arrays);
}

}  // namespace holdfast
