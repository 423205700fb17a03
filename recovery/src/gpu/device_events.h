#pragma once

// Records what the driver reports about the run's devices, and turns it into events for the supervisor.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "decide/supervisor.h"
#include "gpu/gpu_watch.h"
#include "gpu/xid.h"
#include "journal/journal.h"

namespace holdfast::recovery {

class DeviceEvents {
 public:
  // A broken device may report thousands of events. At most so many lines are recorded for each device.
  static constexpr int kMostLines = 100;
  // One error of a device's memory causes several events (48, then 94, and one of NVML's own), some of them late. A
  // process that was started after the first of them is not affected.
  static constexpr std::chrono::seconds kAftermath{5};

  // `devices` are the names of the device slots; `hosts` take turns with them (WatchdogOptions::hosts), and those of
  // the first one count. The journal outlives it.
  DeviceEvents(std::vector<std::string> devices, int hosts, Journal& journal);

  // The N of each cuda:N among the device slots, without repetition.
  std::vector<int> cuda_numbers() const;

  void watched(const std::vector<WatchedGpu>& gpus);
  void unwatched(const std::string& why);
  // Returns the events that follow.
  std::vector<Event> take(const GpuEvent& event, const State& state, Moment now);

  // The newest event of each device, as a list.
  nlohmann::json describe(Moment now) const;

 private:
  // The newest event of a device, and what the watchdog did about its errors.
  struct Last {
    std::string what{};
    Moment moment{};
    int count = 0;
    std::optional<Moment> blow{};  // when its replicas were last replaced
    int first_newcomer = 0;        // the processes from this one on were started since then
  };

  void add_failures(const std::string& device, const std::string& what, const State& state, int first_spared,
                    std::vector<Event>& events) const;
  void write_down(const std::string& device, const GpuEvent& event, XidAction action, const std::string& what);

  const std::vector<std::string> devices_;  // by device slot; empty: of another host
  Journal& journal_;
  std::map<std::string, Last> last_;  // by device
};

}  // namespace holdfast::recovery
