#pragma once

// What happens to the CUDA devices of a run, as NVIDIA's driver tells it: Xid errors, errors of memory that cannot be
// corrected, and devices that are lost. A thread of its own waits for it, since a driver that hangs does not come back;
// what it hears is told on the thread of the watchdog.

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
  int cuda_number = 0;  // of cuda:n
  int xid = 0;
};

struct WatchedGpu {
  int cuda_number = 0;
  GpuFacts facts{};        // what tells it from others
  bool has_events = true;  // its driver tells of them; that it is lost is noticed in any case
};

class GpuWatch {
 public:
  // Called by `io`, never once the watch has gone.
  struct Handlers {
    std::function<void(const std::vector<WatchedGpu>&)> on_begin;
    std::function<void(const GpuEvent&)> on_event;
    // Nothing is watched any more, or ever was.
    std::function<void(const std::string& why)> on_end;
  };

  // `io` outlives it.
  GpuWatch(boost::asio::io_context& io, std::vector<int> cuda_numbers, Handlers handlers);
  // Waits a second at most; in a driver that hangs, the thread stays behind.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

 private:
  class Shared;
  class Watcher;

  std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::recovery
