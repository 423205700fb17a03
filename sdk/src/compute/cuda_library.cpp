// Looks for libholdfast_cuda.so and for NVIDIA's libraries, which it needs. A file that exists but cannot be loaded
// ends the search, and the error has the loader's reason for it. See docs/decisions/devices.md.

#include "compute/cuda_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_library.h"

namespace holdfast::compute {
namespace {

constexpr const char* kFileName = "libholdfast_cuda.so";

// The paths to try, in this order. The system's loader looks for the last one, which has no folder.
std::vector<std::string> candidates() {
  // Nothing else is tried then: a program that took another library than asked would compute other bits.
  if (const char* const given = std::getenv("HOLDFAST_CUDA_LIBRARY")) return {given};
  std::vector<std::string> paths;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) {
    paths.push_back(program.parent_path() / kFileName);
    paths.push_back(program.parent_path().parent_path() / HOLDFAST_LIBRARY_FOLDER / kFileName);
  }
  Dl_info info{};
  // Finds the library if Holdfast itself is a shared one, next to which it was installed.
  if (::dladdr(reinterpret_cast<const void*>(&cuda_library), &info) != 0 && info.dli_fname != nullptr) {
    paths.push_back(std::filesystem::path(info.dli_fname).parent_path() / kFileName);
  }
  paths.emplace_back(kFileName);
  return paths;
}

Error unavailable(const std::string& why) {
  return Error(ErrorCode::unavailable, fmt::format("Holdfast cannot train on CUDA devices here: {}", why));
}

// Loads NVIDIA's libraries from HOLDFAST_LIBRARY_PATH, which the system's loader does not search. It then uses those
// that are already loaded.
void load_what_it_needs() {
  const char* const folders = std::getenv("HOLDFAST_LIBRARY_PATH");
  if (folders == nullptr) return;
  for (const char* const name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcudnn.so.9"}) {
    // Only the name without a folder is left, so none of the folders has the library.
    if (library_candidates(name, folders).size() == 1) continue;
    try {
      SharedLibrary::load(name);
    } catch (const Error&) {
      // dlopen() says below what is missing.
    }
  }
}

void* open_library() {
  load_what_it_needs();
  std::vector<std::string> reasons;
  for (const std::string& path : candidates()) {
    const bool is_file = path.find('/') != std::string::npos;
    if (is_file && !std::filesystem::exists(path)) {
      reasons.push_back(fmt::format("{} does not exist", path));
      continue;
    }
    // RTLD_LOCAL: symbols of the CUDA runtime in there must not replace those of the program.
    if (void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* const reason = ::dlerror();
    reasons.push_back(reason == nullptr ? fmt::format("{} cannot be loaded", path) : reason);
    // The user must hear why this file cannot be loaded. A library from a later place would hide it.
    if (is_file) break;
  }
  throw unavailable(fmt::format("{}; build Holdfast with CUDA, or set HOLDFAST_CUDA_LIBRARY, and see `holdfast doctor`",
                                fmt::join(reasons, "; ")));
}

CudaLibrary& load() {
  void* const library = open_library();
  const auto make = reinterpret_cast<MakeCudaLibrary>(::dlsym(library, kMakeCudaLibrary));
  if (make == nullptr)
    throw unavailable(fmt::format("{} has no symbol {}; build it anew, or correct HOLDFAST_CUDA_LIBRARY", kFileName,
                                  kMakeCudaLibrary));
  // The library gets our function for the log, since its own copy would not know what the user set.
  CudaLibrary* const made =
      make(CudaLibrary::kInterface, [](LogLevel level, std::string_view line) { log(level, line); });
  if (made == nullptr)
    throw unavailable(fmt::format(
        "{} belongs to another version of Holdfast than the program; install both from one build", kFileName));
  return *made;
}

}  // namespace

// Never unloaded, because the CUDA runtime cannot be.
CudaLibrary& cuda_library() {
  static CudaLibrary& library = load();
  return library;
}

std::unique_ptr<Backend> make_cuda_backend(const std::string& device, Precision precision) {
  int index = -1;
  const std::string_view digits = std::string_view(device).substr(std::min(device.size(), std::size_t{5}));
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (!device.starts_with("cuda:") || failure != std::errc() || end != digits.data() + digits.size() || index < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a CUDA device; devices are named cuda:0, cuda:1, ...", device));
  }
  return cuda_library().make_backend(index, precision);
}

}  // namespace holdfast::compute
