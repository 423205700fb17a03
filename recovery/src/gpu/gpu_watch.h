#pragma once

// Watches the CUDA devices of a run through NVIDIA's driver: Xid errors, uncorrectable errors of memory, and lost
// devices. A thread of its own waits for them, because a driver that hangs does not return. The handlers run on the
// watchdog's thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "holdfast/recovery/gpu_monitor.h"

namespace holdfast::recovery {

struct GpuEvent {
  enum class Kind { xid, memory_error, lost };

  Kind kind = Kind::xid;
  int cuda_number = 0;  // the n of cuda:n
  int xid = 0;
};

struct WatchedGpu {
  int cuda_number = 0;
  GpuFacts facts{};        // identifies the device
  bool has_events = true;  // the driver reports events of it; its loss is noticed in any case
};

class GpuWatch {
 public:
  // Called on the thread of `io`, never after the destructor.
  struct Handlers {
    std::function<void(const std::vector<WatchedGpu>&)> on_begin;
    std::function<void(const GpuEvent&)> on_event;
    // Nothing is watched any more, or nothing could be watched.
    std::function<void(const std::string& why)> on_end;
  };

  // `io` outlives it.
  GpuWatch(boost::asio::io_context& io, std::vector<int> cuda_numbers, Handlers handlers);
  // Blocks for a second at most. When the driver hangs, the thread remains in it.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

 private:
  class Shared;
  class Watcher;

  std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::recovery
