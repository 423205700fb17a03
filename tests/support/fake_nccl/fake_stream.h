#pragma once

#include <functional>

namespace holdfast {

// The fake NCCL uses this as a cudaStream_t.
class FakeStream {
 public:
  virtual ~FakeStream() = default;
  // Runs `work` on another thread, after everything that was queued before.
  virtual void enqueue(std::function<void()> work) = 0;
};

}  // namespace holdfast
