// What is wrong with a machine, as a function of facts alone, so that tests can play any machine. A finding is an error
// only where the machine has GPUs and none can be used: training on CPUs would then be a surprise. Everything else that
// is wrong is a warning or a note. Each finding says what to do about it. docs/decisions/devices.md

#include "diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text.h"

namespace holdfast::cli {
namespace {

using recovery::GpuFacts;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastSharedMemory = 512 * kMebibyte;
constexpr double kMuchMemory = 0.1;  // the part of a device's memory in use that is worth a note

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGibibyte));
}

class Doctor {
 public:
  explicit Doctor(const MachineFacts& facts) : facts_(facts) {}

  Diagnosis examine() {
    if (!facts_.gpus) {
      examine_without_survey();
    } else if (facts_.gpus->devices.empty()) {
      examine_without_devices();
    } else {
      examine_with_devices();
    }
    examine_host();
    settle();
    // Stable, so that findings of one severity stay in the order in which the machine was examined.
    std::stable_sort(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    return std::move(diagnosis_);
  }

 private:
  void add(Severity severity, const std::string& what, const std::string& remedy) {
    diagnosis_.findings.push_back({severity, what, remedy});
  }

  void note(const std::string& what, const std::string& remedy) { add(Severity::note, what, remedy); }
  void warn(const std::string& what, const std::string& remedy) { add(Severity::warning, what, remedy); }

  // An error that keeps every GPU from being used.
  void refuse(const std::string& what, const std::string& remedy) {
    are_gpus_usable_ = false;
    add(Severity::error, what, remedy);
  }

  bool does_back_end_load() const { return facts_.was_back_end_tried && facts_.back_end_problem.empty(); }
  bool does_cuda_show_devices() const { return does_back_end_load() && !facts_.back_end_devices.empty(); }

  // The driver's management library does not answer. CUDA may have devices all the same, as in a
  // container without the driver's utilities.
  void examine_without_survey() {
    if (does_cuda_show_devices()) return examine_what_cuda_shows();
    why_cpus_ = "no NVIDIA driver";
    // Cards without a driver are an error: training would take the CPUs without a word.
    if (!facts_.has_driver && facts_.nvidia_cards == 0) return;
    has_gpus_ = true;
    if (facts_.has_driver) {
      refuse(facts_.why_no_gpus, "");
    } else {
      refuse_cards_without_driver();
    }
    if (facts_.was_back_end_tried && !facts_.back_end_problem.empty()) refuse(facts_.back_end_problem, "");
  }

  void refuse_cards_without_driver() {
    refuse(fmt::format("{} of this machine cannot be used: {}", describe_count(facts_.nvidia_cards, "NVIDIA card"),
                       facts_.why_no_gpus),
           "install the NVIDIA driver, or start the container with its GPUs (--gpus all); if the driver's "
           "management library is in an unusual folder, set HOLDFAST_NVML to its path");
  }

  void examine_what_cuda_shows() {
    has_gpus_ = true;
    warn(fmt::format("CUDA has devices whose health cannot be watched: the driver's management library (NVML) does not "
                     "answer: {}",
                     facts_.why_no_gpus),
         "give the container the driver's utilities (NVIDIA_DRIVER_CAPABILITIES=compute,utility); if the library is in "
         "an unusual folder, set HOLDFAST_NVML to its path");
    examine_libraries();
    // Nothing is known of the health of these devices, so all count as fit.
    for (std::size_t n = 0; n < facts_.back_end_devices.size(); ++n) fit_.push_back(n);
    if (fit_.size() > 1) examine_company();
  }

  void examine_without_devices() {
    const std::string what = fmt::format("the NVIDIA driver {} has no device", facts_.gpus->driver_version);
    // The bus has cards where the driver has none: it could not start them, or the container was not given them.
    if (facts_.nvidia_cards > 0) {
      has_gpus_ = true;
      return refuse(fmt::format("{} of this machine cannot be used: {}",
                                describe_count(facts_.nvidia_cards, "NVIDIA card"), what),
                    "look for NVRM in the kernel's log (dmesg), and restart the machine; in a container, start it with "
                    "its GPUs (--gpus all)");
    }
    why_cpus_ = "the NVIDIA driver has no device";
    note(what, "if one is expected, start the container with its GPUs (--gpus all)");
  }

  void examine_with_devices() {
    has_gpus_ = true;
    examine_software();
    for (const GpuFacts& device : facts_.gpus->devices) examine_device(device);
    examine_order();
    find_fit_devices();
    if (fit_.empty()) {
      refuse("CUDA shows no device that Holdfast can train on",
             "see the other findings, and check CUDA_VISIBLE_DEVICES");
    }
    if (fit_.size() > 1) examine_company();
  }

  // Training uses the devices that CUDA shows. They may differ from those that the driver's facts suggest.
  void find_fit_devices() {
    const std::size_t expected = facts_.cuda_order.size();
    // A back end that loads and shows nothing has nothing to train on, whatever the driver says.
    const std::size_t shown = does_back_end_load() ? facts_.back_end_devices.size() : expected;
    for (std::size_t n = 0; n < shown; ++n) {
      if (n >= expected || is_fit(device_of(n))) fit_.push_back(n);
      if (n < expected) continue;
      warn(fmt::format(
               "cuda:{} ({}) cannot be matched to a device of the driver by CUDA_VISIBLE_DEVICES, so its health cannot "
               "be watched",
               n, facts_.back_end_devices[n]),
           "name devices in CUDA_VISIBLE_DEVICES by number or UUID, as nvidia-smi -L prints them");
    }
    if (shown >= expected) return;
    warn(fmt::format("CUDA shows {} of the {} expected", shown, describe_count(expected, "device")),
         "check CUDA_VISIBLE_DEVICES; if a device is split (MIG), CUDA shows a process one instance and no other "
         "device");
  }

  const GpuFacts& device_of(std::size_t cuda_number) const {
    return facts_.gpus->devices.at(static_cast<std::size_t>(facts_.cuda_order.at(cuda_number)));
  }

  // What the driver does not know is not held against a device.
  static bool is_fit(const GpuFacts& device) {
    return device.problem.empty() && device.major.value_or(kOldestArchitecture) >= kOldestArchitecture;
  }

  // The name that training uses. A device that CUDA does not show has only the driver's number.
  std::string name_of(const GpuFacts& device) const {
    const std::string name = cuda_name_of(facts_, device);
    return name.empty() ? fmt::format("GPU {}", device.index) : name;
  }

  // What the machine has installed, before its devices: a missing library explains what they lack.

  void examine_software() {
    const std::optional<int> version = facts_.gpus->cuda_version;
    if (version && version_of_cuda(*version) < kOldestCuda) {
      refuse(fmt::format("the NVIDIA driver {} supports CUDA {} at most, and this build needs {}",
                         facts_.gpus->driver_version, to_string(version_of_cuda(*version)), to_string(kOldestCuda)),
             "install a newer driver, or build Holdfast with an older CUDA toolkit");
    }
    examine_libraries();
    if (facts_.was_back_end_tried && !facts_.back_end_problem.empty()) refuse(facts_.back_end_problem, "");
  }

  void examine_libraries() {
    examine_library(facts_.cudnn, kOldestCudnn);
    if (facts_.cublas.path.empty()) tell_missing(facts_.cublas);
  }

  // The back end cannot load without this library.
  void tell_missing(const LibraryFacts& library) {
    if (!does_back_end_load()) {
      return refuse(fmt::format("{} was not found: {}", library.name, library.problem), how_to_install(library.name));
    }
    note(fmt::format("the version of {} is not known, though the CUDA back end has found it: {}", library.name,
                     library.problem),
         "");
  }

  static std::string how_to_install(const std::string& name) {
    return fmt::format(
        "install {}, or set HOLDFAST_LIBRARY_PATH to the site-packages folder of a Python environment "
        "that has it",
        name);
  }

  void examine_library(const LibraryFacts& library, const Version& oldest) {
    if (library.path.empty()) return tell_missing(library);
    if (!library.version || *library.version >= oldest) return;
    const std::string what = fmt::format("{} {} ({}) is too old; {} is needed", library.name,
                                         to_string(*library.version), library.path, to_string(oldest));
    // If the back end loads with an old version, training may work, so this is only a warning.
    if (!does_back_end_load()) return refuse(what, how_to_install(library.name));
    warn(fmt::format("{}, and this version was not tested", what), how_to_install(library.name));
  }

  // Findings about one device are warnings, since another one may do.

  void examine_device(const GpuFacts& device) {
    const std::string name = name_of(device);
    if (!device.problem.empty()) {
      return warn(fmt::format("{} cannot be used: the driver says \"{}\"", name, device.problem),
                  "look for Xid in the kernel's log (dmesg); reset the device (nvidia-smi --gpu-reset), or restart the "
                  "machine");
    }
    if (device.major.value_or(kOldestArchitecture) < kOldestArchitecture) {
      warn(fmt::format("{} ({}) is not used: its compute capability is {}.{}, and 8.0 or higher is needed", name,
                       device.name, *device.major, device.minor.value_or(0)),
           "use a GPU of the Ampere generation or later");
    }
    examine_link(device, name);
    examine_speed(device, name);
    examine_memory(device, name);
    if (device.is_split.value_or(false)) examine_split(device, name);
  }

  void examine_split(const GpuFacts& device, const std::string& name) {
    if (!facts_.is_instance_named) {
      return warn(fmt::format("{} is split into instances (MIG), and CUDA shows a process one of them", name),
                  "name an instance in CUDA_VISIBLE_DEVICES, or turn MIG off (nvidia-smi -mig 0)");
    }
    // Training uses the instance that is named, so a split device that CUDA does not show needs no note.
    if (std::count(facts_.cuda_order.begin(), facts_.cuda_order.end(), device.index) == 0) return;
    note(fmt::format("{} is an instance (MIG), which is only a part of GPU {}", name, device.index), "");
  }

  // An idle device lowers its link's generation to save power. It never gives up lanes.
  void examine_link(const GpuFacts& device, const std::string& name) {
    if (!device.link_width || !device.max_link_width || *device.link_width >= *device.max_link_width) return;
    warn(fmt::format("{} is connected by {} of {} PCI Express lanes", name, *device.link_width, *device.max_link_width),
         "reseat the card and its riser, or check how the slot shares its lanes");
  }

  void examine_speed(const GpuFacts& device, const std::string& name) {
    if (!device.slowdowns || device.slowdowns->empty()) return;
    std::string how;
    if (device.temperature_celsius) how += fmt::format("{} degrees Celsius", *device.temperature_celsius);
    if (device.power_watts) {
      how += fmt::format("{}{} W", how.empty() ? "" : ", ", static_cast<int>(*device.power_watts));
      if (device.power_limit_watts) how += fmt::format(" of {} W", static_cast<int>(*device.power_limit_watts));
    }
    // A device at its power limit works as intended. Every other reason points to its cooling or
    // its power supply.
    const bool is_power_alone = *device.slowdowns == std::vector<std::string>{"power limit"};
    add(is_power_alone ? Severity::note : Severity::warning,
        fmt::format("{} is slowed down: {}{}", name, joined(*device.slowdowns, ", "),
                    how.empty() ? "" : fmt::format(" ({})", how)),
        is_power_alone ? "this is usual under full load; nvidia-smi -pl sets the limit"
                       : "check its cooling and its power cables");
  }

  void examine_memory(const GpuFacts& device, const std::string& name) {
    if (device.uncorrected_errors.value_or(0) > 0) {
      warn(fmt::format("{} had {} that could not be corrected since the driver was loaded", name,
                       describe_count(*device.uncorrected_errors, "memory error")),
           "reset it when nothing runs on it (nvidia-smi --gpu-reset); if errors return, have the card checked");
    }
    if (device.has_retirement_failed.value_or(false)) {
      warn(fmt::format("{} has failed memory and no spare memory to replace it", name), "have the card replaced");
    }
    if (device.is_retirement_pending.value_or(false)) {
      warn(fmt::format("{} has failed memory, which its next reset will retire", name),
           "reset it when nothing runs on it: nvidia-smi --gpu-reset");
    }
    if (device.has_ecc == false) {
      note(fmt::format("{} does not correct errors of its memory (ECC is off)", name),
           "turn ECC on (nvidia-smi -e 1) if you want memory errors corrected");
    }
    // What other processes hold is missing to training, which then may not fit.
    if (!device.memory_bytes || !device.used_memory_bytes) return;
    if (static_cast<double>(*device.used_memory_bytes) < kMuchMemory * static_cast<double>(*device.memory_bytes))
      return;
    note(fmt::format("{} of the {} of {} are in use", gibibytes(*device.used_memory_bytes),
                     gibibytes(*device.memory_bytes), name),
         "nvidia-smi shows which processes use it");
  }

  // Only the order by PCI bus is the one that nvidia-smi shows.
  void examine_order() {
    if (facts_.is_cuda_order_known) return;
    warn("the devices differ, and CUDA numbers the fastest first, so cuda:0 may be another device than listed here",
         "set CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }

  // Only with two devices or more is there anything to exchange.

  void examine_company() {
    examine_nccl();
    if (facts_.gpus) examine_peers();
    // A /dev/shm that does not exist counts as 0.
    if (facts_.shared_memory_bytes.value_or(0) < kLeastSharedMemory) {
      warn(fmt::format("/dev/shm has {} MiB; NCCL needs more for devices that cannot read each other's memory",
                       facts_.shared_memory_bytes.value_or(0) / kMebibyte),
           "start the container with --shm-size=1g, or mount a larger tmpfs there");
    }
  }

  // All pairs go into one finding, since one setting of the machine usually causes them all.
  void examine_peers() {
    std::vector<std::string> apart;
    std::string why;
    for (const recovery::PeerAccess& peer : facts_.gpus->peers) {
      if (peer.is_possible.value_or(true)) continue;
      apart.push_back(fmt::format("{} and {}", name_of(facts_.gpus->devices.at(static_cast<std::size_t>(peer.from))),
                                  name_of(facts_.gpus->devices.at(static_cast<std::size_t>(peer.to)))));
      why = peer.why_not;
    }
    // A warning only: NCCL goes through the host's memory then, which is slower.
    if (!apart.empty()) {
      warn(fmt::format("these devices cannot access each other's memory: {}{}; their exchange goes through the host's "
                       "memory",
                       joined(apart, ", "), why.empty() ? "" : fmt::format(" ({})", why)),
           "see nvidia-smi topo -p2p r; if the machine allows it, turn the IOMMU and ACS off");
    }
  }

  void examine_nccl() {
    const LibraryFacts& nccl = facts_.nccl;
    std::string problem;
    if (nccl.path.empty()) {
      problem = fmt::format("NCCL was not found: {}", nccl.problem);
    } else if (nccl.version && *nccl.version < kOldestNccl) {
      problem = fmt::format("NCCL {} ({}) is too old; {} is needed", to_string(*nccl.version), nccl.path,
                            to_string(kOldestNccl));
    } else {
      return;
    }
    // Not an error: one device can train without NCCL.
    has_nccl_ = false;
    warn(fmt::format("{}; without it only one device can train", problem), how_to_install("NCCL"));
  }

  // What is looked at on every machine, with GPUs or without.

  void examine_host() {
    if (!facts_.hdf5_plugin.empty()) return;
    note("the HDF5 plugin was not found; other programs need it to read compressed savepoints",
         "install Holdfast, and set HDF5_PLUGIN_PATH to PREFIX/lib/holdfast/hdf5-plugins");
  }

  void settle() {
    // CPUs count only if the machine has no GPU. Otherwise a script that checks a machine with
    // broken GPUs would see a success.
    diagnosis_.can_train = !has_gpus_ || are_gpus_usable_;
    const std::string cpus = fmt::format("trains on {}: ", describe_count(facts_.cores, "CPU device"));
    if (!has_gpus_) {
      diagnosis_.plan = cpus + why_cpus_;
    } else if (!are_gpus_usable_) {
      diagnosis_.plan = fmt::format("{}its GPUs cannot be used", cpus);
    } else {
      diagnosis_.plan = fmt::format("trains on {}", describe_devices());
    }
  }

  // The name of NCCL appears only where it is used, with two devices or more.
  std::string describe_devices() const {
    std::vector<std::string> names;
    for (const std::size_t number : fit_) names.push_back(fmt::format("cuda:{}", number));
    if (names.size() == 1) return names.front();
    if (!has_nccl_) return fmt::format("{} only: the other devices need NCCL", names.front());
    return fmt::format("{} with NCCL{}", joined(names, ", "),
                       facts_.nccl.version ? " " + to_string(*facts_.nccl.version) : "");
  }

  const MachineFacts& facts_;
  Diagnosis diagnosis_;
  bool has_gpus_ = false;
  bool are_gpus_usable_ = true;
  bool has_nccl_ = true;
  std::string why_cpus_;
  std::vector<std::size_t> fit_;  // CUDA's numbers of the devices that can train
};

}  // namespace

std::string_view to_string(Severity severity) {
  constexpr std::array<std::string_view, 3> kNames = {"note", "warning", "error"};
  return kNames.at(static_cast<std::size_t>(severity));
}

Diagnosis diagnose(const MachineFacts& facts) {
  return Doctor(facts).examine();
}

std::string describe_silent_driver(const MachineFacts& facts) {
  if (!facts.back_end_devices.empty()) return "unknown (no NVML)";
  return facts.has_driver ? "does not work" : "missing";
}

}  // namespace holdfast::cli
