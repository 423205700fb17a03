// NVML's wait for events cannot be ended early, and a driver that hangs does not return from it. So the thread shares
// all that it uses with the watchdog's side, and may outlive it. docs/decisions/failing-devices.md

#include "gpu/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include "gpu/nvml_devices.h"
#include "gpu/nvml_library.h"
#include "holdfast/base/error.h"
#include "holdfast/base/threads.h"

namespace holdfast::recovery {
namespace {

constexpr std::chrono::seconds kStopTimeout(1);
constexpr unsigned int kWaitMilliseconds = 100;  // NVML's wait cannot be ended earlier
constexpr std::chrono::seconds kPauseAfterAnError(1);
constexpr int kMostErrors = 5;  // in a row

// The events of all devices that are watched. The session outlives it.
class EventSet {
 public:
  explicit EventSet(const NvmlSession& nvml) : nvml_(nvml) {
    const int code = call_nvml(nvml_->event_set_create, &set_);
    if (code == nvml::kSuccess) return;
    throw Error(ErrorCode::unavailable,
                fmt::format("the NVIDIA driver reports no events: \"{}\"", describe_nvml_error(nvml_.library(), code)));
  }
  ~EventSet() { call_nvml(nvml_->event_set_free, set_); }
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  // False when the device reports none of the events.
  bool add(nvml::Device device) {
    unsigned long long types = nvml::kXidCriticalError | nvml::kDoubleBitEccError;
    unsigned long long supported = 0;
    // NVML refuses to register events that a device does not support.
    if (call_nvml(nvml_->supported_events, device, &supported) == nvml::kSuccess) types &= supported;
    return types != 0 && call_nvml(nvml_->register_events, device, types, set_) == nvml::kSuccess;
  }

  int wait(nvml::EventData& data) { return call_nvml(nvml_->event_set_wait, set_, &data, kWaitMilliseconds); }

 private:
  const NvmlSession& nvml_;
  nvml::EventSet set_ = nullptr;
};

}  // namespace

// Shared by both threads. The last of them frees it.
class GpuWatch::Shared {
 public:
  Shared(boost::asio::io_context& io, Handlers handlers) : io_(io), handlers_(std::move(handlers)) {}

  void stop() {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
    // Not longer: the thread may hang in the driver, and then it ends with the process.
    changed_.wait_for(lock, kStopTimeout, [this] { return has_ended_; });
  }

  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return is_stopping_;
  }

  void pause() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPauseAfterAnError, [this] { return is_stopping_; });
  }

  // Runs on the thread of `io`, which is not used after stop().
  template <class Tell>
  void post(const std::shared_ptr<Shared>& self, Tell tell) {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    boost::asio::post(io_, [self, tell = std::move(tell)] {
      // Posted work may run after stop(), when the owner of the handlers is gone.
      if (!self->is_stopping()) tell(self->handlers_);
    });
  }

 private:
  // The watchdog's loop may be gone once is_stopping_ is set, so it is used under the mutex alone.
  boost::asio::io_context& io_;
  const Handlers handlers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool has_ended_ = false;
};

// Runs on a thread of its own.
class GpuWatch::Watcher {
 public:
  Watcher(std::vector<int> cuda_numbers, std::shared_ptr<Shared> shared)
      : cuda_numbers_(std::move(cuda_numbers)), shared_(std::move(shared)) {}

  // Returns after stop(), or when nothing is left to watch.
  static void watch(const std::vector<int>& cuda_numbers, const std::shared_ptr<Shared>& shared) {
    try {
      Watcher(cuda_numbers, shared).run();
    } catch (const Error& error) {
      shared->post(shared, [why = std::string(error.what())](const Handlers& handlers) { handlers.on_end(why); });
    }
    // Also after an exception: the destructor waits for this, and would otherwise block for the whole second.
    shared->end();
  }

 private:
  struct Watched {
    WatchedGpu gpu{};
    nvml::Device handle = nullptr;
  };

  void run() {
    find();
    while (!shared_->is_stopping()) wait();
  }

  // Done on this thread, because already the list of devices may hang.
  void find() {
    const std::vector<NvmlDevice> devices = find_devices(nvml_);
    std::vector<GpuFacts> facts;
    for (const NvmlDevice& device : devices) facts.push_back(device.facts);
    const std::vector<int> order = cuda_order(facts, std::getenv("CUDA_VISIBLE_DEVICES"));
    for (const int number : cuda_numbers_) {
      // CUDA does not show this device either, so the process on its slot fails and says so. The others are watched.
      if (number >= static_cast<int>(order.size())) continue;
      const NvmlDevice& device = devices.at(static_cast<std::size_t>(order[static_cast<std::size_t>(number)]));
      if (device.handle == nullptr) continue;
      watched_.push_back({.gpu = {.cuda_number = number, .facts = device.facts}, .handle = device.handle});
    }
    register_all();
    std::vector<WatchedGpu> gpus;
    for (const Watched& watched : watched_) gpus.push_back(watched.gpu);
    shared_->post(shared_, [gpus](const Handlers& handlers) { handlers.on_begin(gpus); });
  }

  void register_all() {
    events_.emplace(nvml_);
    if (watched_.empty()) throw Error(ErrorCode::unavailable, "the NVIDIA driver knows none of the run's devices");
    for (Watched& watched : watched_) watched.gpu.has_events = events_->add(watched.handle);
  }

  void wait() {
    if (!events_) register_all();
    const bool has_any_events =
        std::any_of(watched_.begin(), watched_.end(), [](const Watched& watched) { return watched.gpu.has_events; });
    if (!has_any_events) {
      // Without events a loss is found by asking.
      shared_->pause();
      look_for_losses();
      return;
    }
    nvml::EventData data;
    const int code = events_->wait(data);
    if (code == nvml::kTimeout || code == nvml::kSuccess) errors_ = 0;
    if (code == nvml::kTimeout) return;
    if (code == nvml::kSuccess) return tell_of(data);
    // A lost device is the usual cause of an error of the wait.
    if (look_for_losses()) return;
    // A failed wait may pass, so another set is made after a pause. A driver that goes on failing must not be asked
    // without end.
    if (++errors_ >= kMostErrors) {
      throw Error(ErrorCode::unavailable, fmt::format("the NVIDIA driver no longer reports events: \"{}\"",
                                                      describe_nvml_error(nvml_.library(), code)));
    }
    events_.reset();
    shared_->pause();
  }

  void tell_of(const nvml::EventData& data) {
    const auto found = std::find_if(watched_.begin(), watched_.end(),
                                    [&](const Watched& watched) { return watched.handle == data.device; });
    if (found == watched_.end()) return;
    GpuEvent event{.cuda_number = found->gpu.cuda_number};
    event.kind = data.type == nvml::kXidCriticalError ? GpuEvent::Kind::xid : GpuEvent::Kind::memory_error;
    if (event.kind == GpuEvent::Kind::xid) event.xid = static_cast<int>(data.data);
    tell(event);
  }

  void tell(const GpuEvent& event) {
    shared_->post(shared_, [event](const Handlers& handlers) { handlers.on_event(event); });
  }

  // A set with a lost device may report nothing else any more. So another set is made without it.
  bool look_for_losses() {
    const auto lost = std::stable_partition(watched_.begin(), watched_.end(),
                                            [this](const Watched& watched) { return !is_lost(watched.handle); });
    if (lost == watched_.end()) return false;
    for (auto watched = lost; watched != watched_.end(); ++watched) {
      tell({.kind = GpuEvent::Kind::lost, .cuda_number = watched->gpu.cuda_number});
    }
    watched_.erase(lost, watched_.end());
    events_.reset();
    return true;
  }

  // Asks for the temperature, because every device reports it.
  bool is_lost(nvml::Device device) const {
    unsigned int degrees = 0;
    const int code = call_nvml(nvml_->temperature, device, nvml::kTemperatureOfTheGpu, &degrees);
    return code == nvml::kGpuIsLost || code == nvml::kResetRequired;
  }

  const std::vector<int> cuda_numbers_;
  const std::shared_ptr<Shared> shared_;
  const NvmlSession nvml_;
  std::vector<Watched> watched_;
  std::optional<EventSet> events_;  // of all watched devices; empty: it must be made again
  // Failed waits in a row that no lost device explains.
  int errors_ = 0;
};

GpuWatch::GpuWatch(boost::asio::io_context& io, std::vector<int> cuda_numbers, Handlers handlers)
    : shared_(std::make_shared<Shared>(io, std::move(handlers))) {
  start_thread("the thread that watches GPUs", [numbers = std::move(cuda_numbers), shared = shared_] {
    leave_signals_to_others();  // to the thread of the watchdog
    Watcher::watch(numbers, shared);
  }).detach();
}

GpuWatch::~GpuWatch() {
  shared_->stop();
}

}  // namespace holdfast::recovery
