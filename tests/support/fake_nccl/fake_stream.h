#pragma once

#include <functional>

namespace holdfast {

// What the fake NCCL takes for a cudaStream_t.
class FakeStream {
 public:
  virtual ~FakeStream() = default;
  // Runs it behind everything that was queued before, on another thread.
  virtual void enqueue(std::function<void()> work) = 0;
};

}  // namespace holdfast
