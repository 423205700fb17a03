#pragma once

// Memory of a device that is none: the host's, which nobody may touch but the calls of this library. Whoever follows a
// pointer into it elsewhere, as would be wrong with a real device, is ended by SIGSEGV.

#include <cstddef>
#include <memory>
#include <string>

#include "holdfast/core/memory_space.h"

namespace holdfast {

class PretendedMemory final : public MemorySpace {
 public:
  explicit PretendedMemory(int device);
  ~PretendedMemory() override;

  // While one lives, the memory may be touched. They may be nested.
  class Access {
   public:
    explicit Access(PretendedMemory& memory);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    PretendedMemory& memory_;
  };

  std::string device() const override { return "cuda:" + std::to_string(device_); }
  std::shared_ptr<float[]> allocate(std::size_t floats) override;
  void copy_to_host(std::span<const float> from, std::span<float> to) override;
  void copy_from_host(std::span<const float> from, std::span<float> to) override;
  void copy(std::span<const float> from, std::span<float> to) override;
  void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) override;
  void add(std::span<const float> summand, std::span<float> sum) override;
  bool is_finite(std::span<const float> array) override;
  void fill_zero(std::span<float> array) override;
  Digest digest_of(std::span<const std::span<const float>> arrays) override;
  void wait() override {}
  void set_time_limit(std::chrono::milliseconds) override {}
  void pin(std::span<std::byte>) override {}
  void unpin(std::span<std::byte>) override {}

 private:
  void protect(int protection) const;

  const int device_;
  std::byte* region_;
  std::size_t used_ = 0;  // nothing is given back: what trains here is small
  int accesses_ = 0;
};

}  // namespace holdfast
