// Collects the facts of this machine. The libraries are loaded and asked for their version, since a file name does not
// say it. A driver may hang, so it is asked in a way that has a deadline, and after a hang CUDA is not tried.
// docs/decisions/failing-devices.md

#include "machine_facts.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_library.h"
#include "holdfast/compute/device_support.h"
#include "holdfast/recovery/launch.h"

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kSurveyPatience(20);
constexpr const char* kCards = "/sys/bus/pci/devices";
constexpr const char* kPluginFile = "libholdfast_hdf5_zstd.so";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// --- the host

// The machine's memory; a container may be allowed less of it.
std::uint64_t memory_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> shared_memory_bytes() {
  struct statvfs facts {};
  if (::statvfs("/dev/shm", &facts) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(facts.f_blocks) * facts.f_frsize;
}

std::optional<std::uint64_t> locked_memory_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string word_of(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// Counts NVIDIA's display and 3D controllers, not its network cards and bridges.
int count_nvidia_cards() {
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kCards, error)) {
    if (word_of(entry.path() / "vendor") != "0x10de") continue;
    const std::string kind = word_of(entry.path() / "class");
    if (kind.starts_with("0x0300") || kind.starts_with("0x0302")) ++count;
  }
  return count;
}

std::string find_hdf5_plugin() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  // The first folder is that of a build, the second that of an installation.
  std::vector<fs::path> folders{program / "../hdf5-plugins", program / "../lib/holdfast/hdf5-plugins"};
  // HDF5 searches the folders of the variable in their order.
  std::istringstream given(variable("HDF5_PLUGIN_PATH"));
  std::vector<fs::path> first;
  for (std::string folder; std::getline(given, folder, ':');) {
    if (!folder.empty()) first.emplace_back(folder);
  }
  folders.insert(folders.begin(), first.begin(), first.end());
  for (const fs::path& folder : folders) {
    const fs::path file = folder / kPluginFile;
    if (fs::exists(file, error)) return fs::weakly_canonical(file, error).string();
  }
  return "";
}

// --- libraries

Version split(int number, int of_major, int of_minor) {
  return {number / of_major, number % of_major / of_minor, number % of_minor};
}

// Takes the first file that loads. If none does, the loader's reason for each of them is kept.
template <class Ask>
LibraryFacts facts_of(const std::string& name, const std::vector<std::string>& files, const Ask& ask) {
  LibraryFacts facts{.name = name};
  for (const std::string& file : files) {
    try {
      const SharedLibrary library = SharedLibrary::load(file);
      facts.path = library.path();
      facts.version = ask(library);
      facts.problem.clear();
      return facts;
    } catch (const Error& error) {
      facts.problem += (facts.problem.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  return facts;
}

// Functions are looked up by name: this command is not linked with the libraries, because it must
// run where they are missing.
using Unpack = Version (*)(int number);

// For libraries whose function stores the number and returns a status.
auto stored_version(const char* function_name, Unpack unpack) {
  return [=](const SharedLibrary& library) -> std::optional<Version> {
    int number = 0;
    auto* const function = library.find<int(int*)>(function_name);
    if (function == nullptr || function(&number) != 0) return std::nullopt;
    return unpack(number);
  };
}

auto returned_version(const char* function_name, Unpack unpack) {
  return [=](const SharedLibrary& library) -> std::optional<Version> {
    auto* const function = library.find<std::size_t()>(function_name);
    if (function == nullptr) return std::nullopt;
    return unpack(static_cast<int>(function()));
  };
}

// The major version of this build comes first, since a machine may have both.
std::vector<std::string> files_of_cuda(const std::string& file) {
  constexpr int kOwn = HOLDFAST_CUDA_MAJOR;
  return {file + std::to_string(kOwn), file + std::to_string(kOwn == 12 ? 13 : 12)};
}

void look_for_libraries(MachineFacts& facts) {
  // HOLDFAST_NCCL replaces the library, as it does for training.
  const std::string nccl = variable("HOLDFAST_NCCL");
  facts.cuda_runtime = facts_of("CUDA runtime", files_of_cuda("libcudart.so."),
                                stored_version("cudaRuntimeGetVersion", version_of_cuda));
  facts.cublas =
      facts_of("cuBLASLt", files_of_cuda("libcublasLt.so."), returned_version("cublasLtGetVersion", version_of_cublas));
  facts.cudnn =
      facts_of("cuDNN", {"libcudnn.so.9", "libcudnn.so.8"}, returned_version("cudnnGetVersion", version_of_cudnn));
  facts.nccl =
      facts_of("NCCL", {nccl.empty() ? "libnccl.so.2" : nccl}, stored_version("ncclGetVersion", version_of_nccl));
}

// --- GPUs

bool is_there(const std::string& library) {
  try {
    SharedLibrary::load(library);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Returns whether to try CUDA: it may have devices, and the driver does not hang. CUDA would wait for such a driver.
bool look_for_gpus(MachineFacts& facts) {
  // The kernel lists the cards of the PCI bus whether or not they have a driver.
  facts.nvidia_cards = count_nvidia_cards();
  try {
    facts.gpus = recovery::survey_gpus(Deadline::after(kSurveyPatience));
    facts.has_driver = true;
  } catch (const Error& error) {
    // Only not_found means that there is no driver. One that hangs or fails is there, and is to be
    // repaired.
    facts.has_driver = error.code() != ErrorCode::not_found;
    facts.why_no_gpus = error.what();
    // A container may have the driver's CUDA library without its management library.
    return error.code() != ErrorCode::deadline_exceeded && is_there("libcuda.so.1");
  }
  facts.cuda_order = recovery::cuda_order(facts.gpus->devices, std::getenv("CUDA_VISIBLE_DEVICES"));
  facts.is_cuda_order_known = recovery::is_cuda_order_known(facts.gpus->devices, std::getenv("CUDA_DEVICE_ORDER"));
  facts.is_instance_named = variable("CUDA_VISIBLE_DEVICES").find("MIG-") != std::string::npos;
  return !facts.gpus->devices.empty();
}

}  // namespace

std::string to_string(const Version& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Version version_of_cuda(int number) {
  return {number / 1000, number % 1000 / 10, number % 10};
}

Version version_of_cublas(int number) {
  return split(number, 10000, 100);
}

Version version_of_cudnn(int number) {
  return number < 10000 ? split(number, 1000, 100) : split(number, 10000, 100);
}

Version version_of_nccl(int number) {
  return number < 10000 ? split(number, 1000, 100) : split(number, 10000, 100);
}

std::string cuda_name_of(const MachineFacts& facts, const recovery::GpuFacts& device) {
  const auto found = std::find(facts.cuda_order.begin(), facts.cuda_order.end(), device.index);
  return found == facts.cuda_order.end() ? "" : fmt::format("cuda:{}", found - facts.cuda_order.begin());
}

MachineFacts look_at_machine() {
  MachineFacts facts{.cores = core_count(),
                     .memory_bytes = memory_bytes(),
                     .shared_memory_bytes = shared_memory_bytes(),
                     .locked_memory_bytes = locked_memory_bytes(),
                     .hdf5_plugin = find_hdf5_plugin()};
  if (look_for_gpus(facts)) {
    const CudaSupport support = look_for_cuda();
    facts.was_back_end_tried = true;
    facts.back_end_problem = support.problem;
    facts.back_end_devices = support.devices;
  }
  // The back end comes first. The loader searches the back end's own folders (DT_RPATH) for the libraries it needs, and
  // libraries that are loaded can then be found by name.
  look_for_libraries(facts);
  return facts;
}

}  // namespace holdfast::cli
