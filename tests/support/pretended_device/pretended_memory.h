#pragma once

// The memory of a pretended device. It is host memory that only calls of this library can access. Any other code that
// follows a pointer into it, which would be wrong with a real device too, ends by SIGSEGV.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/memory_space.h"

namespace holdfast {

class PretendedMemory final : public MemorySpace {
 public:
  explicit PretendedMemory(int device);
  ~PretendedMemory() override;

  // The memory is accessible as long as one of these exists. They may be nested.
  class Access {
   public:
    explicit Access(PretendedMemory& memory);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    PretendedMemory& memory_;
  };

  // Runs the call at once, or, while work is being recorded, each time when it is repeated.
  void queue(std::function<void()> call);
  // See Backend::repeat(). Waiting or allocating meanwhile fails an assertion.
  void repeat(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
              const std::function<void(std::size_t)>& after_part);

  void require_no_recording() const;
  // How often recorded work was repeated since the process began.
  static int repeats();

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
  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) override;
  std::unique_ptr<RowFeed> feed(std::span<const float> from, std::size_t row_floats) override;
  void wait() override {}
  void set_time_limit(std::chrono::milliseconds) override {}
  void pin(std::span<std::byte>) override {}
  void unpin(std::span<std::byte>) override {}

 private:
  class Held;
  class Feed;
  float* place_of(std::size_t floats);

  void protect(int protection) const;

  using Calls = std::vector<std::function<void()>>;
  Calls record(const std::function<void()>& queue);
  void play(const Calls& calls);

  const int device_;
  std::map<std::vector<std::uint64_t>, std::vector<Calls>> recorded_;  // the parts; empty: asked for once
  Calls* recording_ = nullptr;
  std::byte* region_;
  std::atomic<std::size_t> used_ = 0;  // never decreases, because models here are small
  std::mutex mutex_;
  int accesses_ = 0;                                // guarded by mutex_
  std::multimap<std::size_t, float*> free_places_;  // for hold(), by size in floats; guarded by mutex_
};

}  // namespace holdfast
