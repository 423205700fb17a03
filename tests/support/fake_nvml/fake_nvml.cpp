// An NVML that answers from a file. It has the functions that Holdfast calls, with the structures of nvml.h.
// HOLDFAST_FAKE_NVML in the environment names the file. nvmlInit_v2 reads it:
//
//   {"driver_version": "580.65.06", "nvml_version": "13.580.65.06", "cuda_version": 13000,
//    "init": 0,                    what nvmlInit_v2 returns
//    "hangs_in": "nvmlInit_v2",    a function that never returns (nvmlInit_v2, nvmlEventSetWait_v2)
//    "peers": 0,                   the P2P status between any two devices
//    "events": "/path",            a file of events, see below
//    "devices": [{"name": "NVIDIA H200", "memory": {"total": 150754820096, "used": 0}, ...}]}
//
// "instances": ["MIG-...", "", "MIG-..."] lists the instances of a device that is split, by number. An empty text means
// that there is no instance with this number.
//
// Values that a device does not have are "not supported". With "lost": true, or if the file exists that "lost_when"
// names, every answer is "GPU is lost". The file of events has one line for each event, {"device": 1, "xid": 79} or
// {"device": 1, "type": 2}. It is read while a caller waits for events. Lines from before the set was made are ignored.
//
// With FAKE_NVML_IS_OLD it lacks the functions that came after driver 319.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#define FAKE_NVML extern "C" __attribute__((visibility("default")))

namespace {

using Json = nlohmann::json;

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kTimeout = 10;
constexpr int kGpuIsLost = 15;
constexpr int kUnknown = 999;

constexpr unsigned long long kXidCriticalError = 8;

using Handle = void*;

struct Pci {
  char short_bus_id[16];
  unsigned int domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct Memory {
  unsigned long long total, free, used;
};

struct Utilization {
  unsigned int gpu, memory;
};

struct EventData {
  Handle device;
  unsigned long long type, data;
  unsigned int gpu_instance, compute_instance;
};

struct EventSet {
  std::map<int, unsigned long long> types{};  // by device
  std::streamoff read = 0;                    // how much of the file of events was read
};

// The watchdog and the survey may call from several threads.
std::mutex mutex;
// Never destroyed: a watching thread may still call while the process ends.
Json& facts = *new Json;
int users = 0;
std::string& path_of_facts = *new std::string;

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void hang_if_asked(const char* function) {
  bool hangs = false;
  {
    const std::lock_guard lock(mutex);
    hangs = facts.value("hangs_in", "") == function;
  }
  if (hangs) hang();
}

Json facts_of_the_file(const char* path) {
  if (path == nullptr) return {{"init", 9}};
  std::ifstream file(path);
  Json read = Json::parse(file, nullptr, false);
  return read.is_object() ? read : Json{{"init", kUnknown}};
}

// Handles of devices count from 1, so that no handle is null. An instance's handle is its device's times this, plus its
// number.
constexpr std::intptr_t kInstances = 1000;

Handle handle_of(int index) {
  return reinterpret_cast<Handle>(static_cast<std::intptr_t>(index) + 1);
}

int index_of(Handle handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1;
}

bool is_lost(int index) {
  const Json& device = facts.at("devices").at(static_cast<std::size_t>(index));
  return device.value("lost", false) || std::filesystem::exists(device.value("lost_when", ""));
}

template <class Take>
int answer(Handle handle, const char* name, const Take& take) {
  const std::lock_guard lock(mutex);
  const int index = index_of(handle);
  if (index < 0 || index >= static_cast<int>(facts["devices"].size())) return kInvalidArgument;
  if (is_lost(index)) return kGpuIsLost;
  const Json& device = facts["devices"][static_cast<std::size_t>(index)];
  const auto fact = device.find(name);
  if (fact == device.end()) return kNotSupported;
  take(*fact);
  return kSuccess;
}

template <class Number>
int answer_number(Handle handle, const char* name, Number* number) {
  return answer(handle, name, [number](const Json& fact) { *number = fact.get<Number>(); });
}

void copy(const std::string& text, char* to, std::size_t size) {
  const std::size_t length = text.copy(to, size - 1);
  to[length] = '\0';
}

int answer_text(Handle handle, const char* name, char* text, unsigned int size) {
  return answer(handle, name, [=](const Json& fact) { copy(fact.get<std::string>(), text, size); });
}

int say(const char* name, char* text, unsigned int size) {
  const std::lock_guard lock(mutex);
  if (!facts.contains(name)) return kNotSupported;
  copy(facts[name].get<std::string>(), text, size);
  return kSuccess;
}

#ifndef FAKE_NVML_IS_OLD

std::string path_of_events() {
  const std::lock_guard lock(mutex);
  return facts.value("events", "");
}

// The next whole line after what was read.
bool read_line(EventSet& set, std::string& line) {
  std::ifstream file(path_of_events());
  if (!file || !file.seekg(set.read)) return false;
  if (!std::getline(file, line) || file.eof()) return false;
  set.read = file.tellg();
  return true;
}

// Whether the set waits for events of a lost device.
bool has_lost_device(const EventSet& set) {
  const std::lock_guard lock(mutex);
  return std::any_of(set.types.begin(), set.types.end(), [](const auto& entry) { return is_lost(entry.first); });
}

bool take_event(const EventSet& set, const Json& event, EventData& data) {
  const int device = event.at("device").get<int>();
  const unsigned long long type = event.value("type", kXidCriticalError);
  const auto registered = set.types.find(device);
  if (registered == set.types.end() || (registered->second & type) == 0) return false;
  data = {handle_of(device), type, event.value("xid", 0ULL), ~0U, ~0U};
  return true;
}

#endif

}  // namespace

FAKE_NVML int nvmlInit_v2() {
  {
    const std::lock_guard lock(mutex);
    // A caller that hangs counts as a user forever, so the facts are also read again when the path changes.
    const char* const path = std::getenv("HOLDFAST_FAKE_NVML");
    if (users == 0 || path == nullptr || path != path_of_facts) facts = facts_of_the_file(path);
    path_of_facts = path == nullptr ? "" : path;
  }
  hang_if_asked("nvmlInit_v2");
  const std::lock_guard lock(mutex);
  const int code = facts.value("init", kSuccess);
  if (code == kSuccess) ++users;
  return code;
}

FAKE_NVML int nvmlShutdown() {
  const std::lock_guard lock(mutex);
  if (users == 0) return kUninitialized;
  --users;
  return kSuccess;
}

FAKE_NVML const char* nvmlErrorString(int code) {
  switch (code) {
    case kNotSupported:
      return "Not Supported";
    case 9:
      return "Driver Not Loaded";
    case kGpuIsLost:
      return "GPU is lost";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

FAKE_NVML int nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  return say("driver_version", text, size);
}

FAKE_NVML int nvmlSystemGetNVMLVersion(char* text, unsigned int size) {
  return say("nvml_version", text, size);
}

FAKE_NVML int nvmlDeviceGetCount_v2(unsigned int* count) {
  const std::lock_guard lock(mutex);
  *count = static_cast<unsigned int>(facts["devices"].size());
  return kSuccess;
}

FAKE_NVML int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Handle* device) {
  const std::lock_guard lock(mutex);
  if (index >= facts["devices"].size()) return kInvalidArgument;
  if (is_lost(static_cast<int>(index))) return kGpuIsLost;
  *device = handle_of(static_cast<int>(index));
  return kSuccess;
}

FAKE_NVML int nvmlDeviceGetName(Handle device, char* text, unsigned int size) {
  return answer_text(device, "name", text, size);
}

FAKE_NVML int nvmlDeviceGetUUID(Handle device, char* text, unsigned int size) {
  const auto number = reinterpret_cast<std::intptr_t>(device);
  if (number < kInstances) return answer_text(device, "uuid", text, size);
  return answer(reinterpret_cast<Handle>(number / kInstances), "instances", [&](const Json& instances) {
    copy(instances.at(static_cast<std::size_t>(number % kInstances)).get<std::string>(), text, size);
  });
}

FAKE_NVML int nvmlDeviceGetMemoryInfo(Handle device, Memory* memory) {
  return answer(device, "memory", [memory](const Json& fact) {
    memory->total = fact.at("total");
    memory->used = fact.at("used");
    memory->free = memory->total - memory->used;
  });
}

FAKE_NVML int nvmlDeviceGetTemperature(Handle device, int, unsigned int* degrees) {
  return answer_number(device, "temperature", degrees);
}

#ifndef FAKE_NVML_IS_OLD

FAKE_NVML int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const std::lock_guard lock(mutex);
  if (!facts.contains("cuda_version")) return kNotSupported;
  *version = facts["cuda_version"];
  return kSuccess;
}

FAKE_NVML int nvmlDeviceGetPciInfo_v3(Handle device, Pci* pci) {
  return answer(device, "bus_id",
                [pci](const Json& fact) { copy(fact.get<std::string>(), pci->bus_id, sizeof pci->bus_id); });
}

FAKE_NVML int nvmlDeviceGetCudaComputeCapability(Handle device, int* major, int* minor) {
  return answer(device, "compute_capability", [=](const Json& fact) {
    *major = fact.at(0);
    *minor = fact.at(1);
  });
}

FAKE_NVML int nvmlDeviceGetPowerUsage(Handle device, unsigned int* milliwatts) {
  return answer_number(device, "milliwatts", milliwatts);
}

FAKE_NVML int nvmlDeviceGetEnforcedPowerLimit(Handle device, unsigned int* milliwatts) {
  return answer_number(device, "milliwatts_limit", milliwatts);
}

FAKE_NVML int nvmlDeviceGetCurrentClocksEventReasons(Handle device, unsigned long long* reasons) {
  return answer_number(device, "clocks_event_reasons", reasons);
}

FAKE_NVML int nvmlDeviceGetEccMode(Handle device, int* current, int* pending) {
  *pending = 0;
  return answer_number(device, "ecc_mode", current);
}

FAKE_NVML int nvmlDeviceGetTotalEccErrors(Handle device, int kind, int counter, unsigned long long* count) {
  if (kind != 1) return kNotSupported;
  return answer_number(device, counter == 0 ? "uncorrected_errors" : "uncorrected_errors_ever", count);
}

FAKE_NVML int nvmlDeviceGetRetiredPagesPendingStatus(Handle device, int* is_pending) {
  return answer_number(device, "pages_pending", is_pending);
}

FAKE_NVML int nvmlDeviceGetRemappedRows(Handle device, unsigned int* corrected, unsigned int* uncorrected,
                                        unsigned int* pending, unsigned int* failed) {
  return answer(device, "remapped_rows", [=](const Json& fact) {
    *corrected = fact.value("corrected", 0U);
    *uncorrected = fact.value("uncorrected", 0U);
    *pending = fact.value("pending", 0U);
    *failed = fact.value("failed", 0U);
  });
}

FAKE_NVML int nvmlDeviceGetCurrPcieLinkGeneration(Handle device, unsigned int* generation) {
  return answer_number(device, "link_generation", generation);
}

FAKE_NVML int nvmlDeviceGetMaxPcieLinkGeneration(Handle device, unsigned int* generation) {
  return answer_number(device, "max_link_generation", generation);
}

FAKE_NVML int nvmlDeviceGetCurrPcieLinkWidth(Handle device, unsigned int* width) {
  return answer_number(device, "link_width", width);
}

FAKE_NVML int nvmlDeviceGetMaxPcieLinkWidth(Handle device, unsigned int* width) {
  return answer_number(device, "max_link_width", width);
}

FAKE_NVML int nvmlDeviceGetP2PStatus(Handle, Handle, int, int* status) {
  const std::lock_guard lock(mutex);
  if (!facts.contains("peers")) return kNotSupported;
  *status = facts["peers"];
  return kSuccess;
}

FAKE_NVML int nvmlDeviceGetUtilizationRates(Handle device, Utilization* utilization) {
  utilization->memory = 0;
  return answer_number(device, "utilization", &utilization->gpu);
}

FAKE_NVML int nvmlDeviceGetMigMode(Handle device, unsigned int* current, unsigned int* pending) {
  *pending = 0;
  return answer_number(device, "mig_mode", current);
}

FAKE_NVML int nvmlDeviceGetMaxMigDeviceCount(Handle device, unsigned int* count) {
  *count = 0;
  const int code =
      answer(device, "instances", [count](const Json& uuids) { *count = static_cast<unsigned int>(uuids.size()); });
  return code == kNotSupported ? kSuccess : code;
}

FAKE_NVML int nvmlDeviceGetMigDeviceHandleByIndex(Handle device, unsigned int number, Handle* instance) {
  bool is_there = false;
  const int code =
      answer(device, "instances", [&](const Json& uuids) { is_there = number < uuids.size() && uuids[number] != ""; });
  if (code != kSuccess) return code;
  if (!is_there) return kNotFound;
  *instance = reinterpret_cast<Handle>(reinterpret_cast<std::intptr_t>(device) * kInstances + number);
  return kSuccess;
}

FAKE_NVML int nvmlEventSetCreate(EventSet** set) {
  *set = new EventSet;
  std::ifstream file(path_of_events(), std::ios::ate);
  if (file) (*set)->read = file.tellg();
  return kSuccess;
}

FAKE_NVML int nvmlEventSetFree(EventSet* set) {
  delete set;
  return kSuccess;
}

FAKE_NVML int nvmlDeviceGetSupportedEventTypes(Handle device, unsigned long long* types) {
  return answer_number(device, "event_types", types);
}

FAKE_NVML int nvmlDeviceRegisterEvents(Handle device, unsigned long long types, EventSet* set) {
  unsigned long long supported = 0;
  const int code = answer_number(device, "event_types", &supported);
  if (code != kSuccess) return code;
  if ((types & ~supported) != 0) return kNotSupported;
  set->types[index_of(device)] |= types;
  return kSuccess;
}

FAKE_NVML int nvmlEventSetWait_v2(EventSet* set, EventData* data, unsigned int milliseconds) {
  hang_if_asked("nvmlEventSetWait_v2");
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  do {
    for (std::string line; read_line(*set, line);) {
      if (take_event(*set, Json::parse(line), *data)) return kSuccess;
    }
    if (has_lost_device(*set)) return kGpuIsLost;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (std::chrono::steady_clock::now() < until);
  return kTimeout;
}

#endif
