// Calls of NVML have no deadline, and a driver in trouble is when they matter. So they run on a thread that is left
// alone when it does not come back. docs/decisions/failing-devices.md

#include "holdfast/recovery/gpu_monitor.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "gpu/nvml_devices.h"
#include "gpu/nvml_library.h"
#include "holdfast/base/error.h"
#include "holdfast/base/threads.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

// Numbers of enumerators in nvml.h: kinds of memory errors, counters since the driver was loaded or for the device's
// life, and reading for peer access.
constexpr int kUncorrectedErrors = 1;
constexpr int kSinceTheDriverWasLoaded = 0;
constexpr int kEver = 1;
constexpr int kReading = 0;

// Drivers of all ages are asked, so a fact that one of them does not know stays empty.
// A fact that one call returns as a number.
template <class Fact, class Number>
std::optional<Fact> fact_of(int (*function)(nvml::Device, Number*), nvml::Device device) {
  Number number{};
  if (call_nvml(function, device, &number) != nvml::kSuccess) return std::nullopt;
  return static_cast<Fact>(number);
}

std::optional<double> watts_of(int (*function)(nvml::Device, unsigned int*), nvml::Device device) {
  // NVML counts power in milliwatts.
  const auto milliwatts = fact_of<double>(function, device);
  return milliwatts ? std::optional(*milliwatts / 1000) : std::nullopt;
}

std::vector<std::string> describe_slowdowns(unsigned long long reasons) {
  static const std::vector<std::pair<unsigned long long, std::string>> names{
      {nvml::kSoftwarePowerCap, "power limit"},
      {nvml::kHardwareSlowdown, "hardware slowdown"},
      {nvml::kSoftwareThermalSlowdown, "temperature (software)"},
      {nvml::kHardwareThermalSlowdown, "temperature (hardware)"},
      {nvml::kPowerBrake, "external power brake"}};
  std::vector<std::string> found;
  for (const auto& [bit, name] : names) {
    if ((reasons & bit) != 0) found.push_back(name);
  }
  return found;
}

class Surveyor {
 public:
  GpuSurvey survey() {
    GpuSurvey survey;
    survey.library = nvml_->path();
    survey.library_version = text_of(nvml_->nvml_version);
    survey.driver_version = text_of(nvml_->driver_version);
    int version = 0;
    if (call_nvml(nvml_->cuda_version, &version) == nvml::kSuccess) survey.cuda_version = version;
    for (const NvmlDevice& device : devices_) survey.devices.push_back(look_at(device));
    for (std::size_t from = 0; from < devices_.size(); ++from) {
      // Access is asked for in one direction only, so each pair appears once in the survey.
      for (std::size_t to = from + 1; to < devices_.size(); ++to) survey.peers.push_back(access_between(from, to));
    }
    return survey;
  }

 private:
  GpuFacts look_at(const NvmlDevice& device) const {
    GpuFacts facts = device.facts;
    if (device.handle == nullptr) return facts;
    look_at_kind(device.handle, facts);
    measure(device.handle, facts);
    look_at_memory_errors(device.handle, facts);
    look_at_link(device.handle, facts);
    return facts;
  }

  void look_at_kind(nvml::Device device, GpuFacts& facts) const {
    int major = 0;
    int minor = 0;
    if (call_nvml(nvml_->compute_capability, device, &major, &minor) == nvml::kSuccess) {
      facts.major = major;
      facts.minor = minor;
    }
    unsigned int mode = 0;
    unsigned int pending_mode = 0;
    const int code = call_nvml(nvml_->mig_mode, device, &mode, &pending_mode);
    // The pending mode comes with the next reset, and says nothing about what processes can use today.
    if (code == nvml::kSuccess) facts.is_split = mode == 1;
  }

  void measure(nvml::Device device, GpuFacts& facts) const {
    nvml::Memory memory;
    const int code = call_nvml(nvml_->memory, device, &memory);
    if (code == nvml::kSuccess) {
      facts.memory_bytes = memory.total;
      facts.used_memory_bytes = memory.used;
    }
    // In some versions a lost device still has a handle.
    if (code == nvml::kGpuIsLost || code == nvml::kResetRequired) {
      facts.problem = describe_nvml_error(nvml_.library(), code);
    }
    unsigned int degrees = 0;
    if (call_nvml(nvml_->temperature, device, nvml::kTemperatureOfTheGpu, &degrees) == nvml::kSuccess) {
      facts.temperature_celsius = static_cast<int>(degrees);
    }
    facts.power_watts = watts_of(nvml_->power, device);
    facts.power_limit_watts = watts_of(nvml_->power_limit, device);
    nvml::Utilization utilization;
    if (call_nvml(nvml_->utilization, device, &utilization) == nvml::kSuccess) {
      facts.utilization_percent = static_cast<int>(utilization.gpu);
    }
    const auto reasons = fact_of<unsigned long long>(nvml_->slowdown_reasons, device);
    if (reasons) facts.slowdowns = describe_slowdowns(*reasons);
  }

  std::optional<std::uint64_t> count_errors(nvml::Device device, int since) const {
    unsigned long long errors = 0;
    const int code = call_nvml(nvml_->ecc_errors, device, kUncorrectedErrors, since, &errors);
    return code == nvml::kSuccess ? std::optional<std::uint64_t>(errors) : std::nullopt;
  }

  void look_at_memory_errors(nvml::Device device, GpuFacts& facts) const {
    int is_on = 0;
    int will_be_on = 0;
    if (call_nvml(nvml_->ecc_mode, device, &is_on, &will_be_on) == nvml::kSuccess) facts.has_ecc = is_on == 1;
    facts.uncorrected_errors = count_errors(device, kSinceTheDriverWasLoaded);
    facts.uncorrected_errors_ever = count_errors(device, kEver);
    // Devices before Ampere retire pages; later ones remap rows.
    facts.is_retirement_pending = fact_of<bool>(nvml_->pages_pending, device);
    unsigned int corrected = 0;
    unsigned int uncorrected = 0;
    unsigned int pending = 0;
    unsigned int failed = 0;
    const int code = call_nvml(nvml_->remapped_rows, device, &corrected, &uncorrected, &pending, &failed);
    if (code != nvml::kSuccess) return;
    // A driver may answer both questions. One that says yes is enough.
    facts.is_retirement_pending = pending != 0 || facts.is_retirement_pending.value_or(false);
    facts.has_retirement_failed = failed != 0;
  }

  void look_at_link(nvml::Device device, GpuFacts& facts) const {
    facts.link_generation = fact_of<int>(nvml_->link_generation, device);
    facts.max_link_generation = fact_of<int>(nvml_->max_link_generation, device);
    facts.link_width = fact_of<int>(nvml_->link_width, device);
    facts.max_link_width = fact_of<int>(nvml_->max_link_width, device);
  }

  // The numbers of nvmlGpuP2PStatus_t, in their order.
  static std::string reason_of(int status) {
    static const std::vector<std::string> reasons{"",
                                                  "the chipset does not support it",
                                                  "the GPU does not support it",
                                                  "the way between them does not support it",
                                                  "it is turned off in the driver's settings",
                                                  "it is not supported"};
    const auto index = static_cast<std::size_t>(status);
    return index < reasons.size() ? reasons[index] : "the driver does not say why";
  }

  PeerAccess access_between(std::size_t from, std::size_t to) const {
    PeerAccess access{.from = devices_[from].facts.index, .to = devices_[to].facts.index};
    const nvml::Device a = devices_[from].handle;
    const nvml::Device b = devices_[to].handle;
    int status = 0;
    if (a == nullptr || b == nullptr || call_nvml(nvml_->peer_status, a, b, kReading, &status) != nvml::kSuccess) {
      return access;
    }
    access.is_possible = status == 0;
    access.why_not = reason_of(status);
    return access;
  }

  // In this order: the devices are found by the session, and must not outlive it.
  const NvmlSession nvml_;
  const std::vector<NvmlDevice> devices_ = find_devices(nvml_);
};

// Shared by the thread that asks and the thread that waits. The last of them frees it.
struct SurveyAnswer {
  std::mutex mutex{};
  std::condition_variable is_there{};
  std::optional<GpuSurvey> survey{};
  std::exception_ptr failure{};
};

void ask(SurveyAnswer& answer) {
  std::optional<GpuSurvey> survey;
  std::exception_ptr failure;
  try {
    // Outside the lock. The driver may hang here, and the thread that waits must still reach its deadline.
    survey = Surveyor().survey();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(answer.mutex);
  answer.survey = std::move(survey);
  answer.failure = std::move(failure);
  answer.is_there.notify_all();
}

// Instances are named by their UUID, "MIG-...". Drivers before 470 use "MIG-GPU-.../3/0": the UUID of the device and
// the numbers of the instance.
bool names_instance_of(const GpuFacts& facts, const std::string& entry) {
  const std::size_t slash = entry.find('/');
  if (entry.starts_with("MIG-GPU-") && slash != std::string::npos) {
    return facts.uuid.starts_with(entry.substr(4, slash - 4));
  }
  return std::any_of(facts.instances.begin(), facts.instances.end(),
                     [&](const std::string& uuid) { return uuid.starts_with(entry); });
}

std::optional<int> index_of(const std::string& entry, const std::vector<GpuFacts>& devices) {
  if (const auto number = whole_number<int>(entry)) {
    return *number >= 0 && *number < static_cast<int>(devices.size()) ? number : std::nullopt;
  }
  // CUDA takes the beginning of a UUID, so the comparison below does as well.
  const bool is_instance = entry.starts_with("MIG-");
  if (!is_instance && !entry.starts_with("GPU-")) return std::nullopt;
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const GpuFacts& facts) {
    return is_instance ? names_instance_of(facts, entry) : facts.uuid.starts_with(entry);
  });
  return found == devices.end() ? std::nullopt : std::optional(found->index);
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  return text;
}

}  // namespace

GpuSurvey survey_gpus(Deadline deadline) {
  const auto answer = std::make_shared<SurveyAnswer>();
  start_thread("the thread that asks the NVIDIA driver", [answer] { ask(*answer); }).detach();
  std::unique_lock lock(answer->mutex);
  const bool is_there = answer->is_there.wait_until(lock, deadline.moment(),
                                                    [&] { return answer->survey.has_value() || answer->failure; });
  if (!is_there) {
    throw Error(ErrorCode::deadline_exceeded,
                "the NVIDIA driver did not answer in time, so a GPU of this machine hangs; look for NVRM in the "
                "kernel's log (dmesg), and restart the machine if it lasts");
  }
  // Taken out, so that the exception is freed on this thread and not on the one that asked.
  if (answer->failure) std::rethrow_exception(std::exchange(answer->failure, nullptr));
  return std::move(*answer->survey);
}

std::vector<int> cuda_order(const std::vector<GpuFacts>& devices, const char* visible) {
  std::vector<int> order;
  if (visible == nullptr) {
    for (const GpuFacts& facts : devices) {
      // CUDA does not number lost devices.
      if (facts.problem.empty()) order.push_back(facts.index);
    }
    return order;
  }
  std::istringstream entries(visible);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::optional<int> index = index_of(without_spaces(entry), devices);
    // CUDA hides all devices after an entry that it does not know.
    if (!index) break;
    order.push_back(*index);
  }
  return order;
}

bool is_cuda_order_known(const std::vector<GpuFacts>& devices, const char* device_order) {
  if (device_order != nullptr && std::string(device_order) == "PCI_BUS_ID") return true;
  // CUDA puts the fastest device first unless it is told to keep the order of the bus. Equal devices have no fastest
  // one.
  std::set<std::string> kinds;
  for (const GpuFacts& facts : devices) {
    if (facts.problem.empty()) kinds.insert(facts.name);
  }
  return kinds.size() <= 1;
}

}  // namespace holdfast::recovery
