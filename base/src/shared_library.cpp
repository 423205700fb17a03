// Loads NVIDIA's libraries from where a user has them: from the system, or from the packages of a Python environment.
// If no place works, the error gives the loader's reason for each of them. See docs/decisions/devices.md.

#include "holdfast/base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders = "HOLDFAST_LIBRARY_PATH";

// The existing folders FOLDER/nvidia/*/lib, sorted: where NVIDIA's Python packages keep their libraries.
std::vector<std::string> folders_of_packages(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "nvidia", error)) {
    const fs::path libraries = entry.path() / "lib";
    if (fs::is_directory(libraries, error)) found.push_back(libraries.string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_if_there(const std::string& path, std::vector<std::string>& paths) {
  std::error_code error;
  if (fs::exists(path, error)) paths.push_back(path);
}

std::string reason_of_the_loader(const std::string& path) {
  const char* const reason = ::dlerror();
  return reason == nullptr ? fmt::format("{} cannot be loaded, and the loader gives no reason", path) : reason;
}

}  // namespace

std::vector<std::string> library_candidates(const std::string& name, const std::string& folders) {
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> paths;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    add_if_there(path_in_folder(folder, name), paths);
    for (const std::string& package : folders_of_packages(folder)) add_if_there(path_in_folder(package, name), paths);
  }
  // Last comes what the loader finds by itself, in LD_LIBRARY_PATH and the folders of the system.
  paths.push_back(name);
  return paths;
}

SharedLibrary SharedLibrary::load(const std::string& name) {
  const char* const folders = std::getenv(kFolders);
  std::vector<std::string> reasons;
  for (const std::string& path : library_candidates(name, folders == nullptr ? "" : folders)) {
    // RTLD_NOW: a library that lacks a symbol fails here, and not in the middle of a training. RTLD_LOCAL: its
    // symbols do not replace those of the program.
    if (void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, path);
    reasons.push_back(reason_of_the_loader(path));
  }
  throw Error(ErrorCode::unavailable, fmt::format("{}", fmt::join(reasons, "; ")));
}

SharedLibrary::SharedLibrary(void* handle, const std::string& name) : handle_(handle), path_(name) {
  const link_map* map = nullptr;
  // The loader's path says which of several versions on a machine was taken.
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && *map->l_name != '\0') path_ = map->l_name;
}

void* SharedLibrary::address(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

}  // namespace holdfast
