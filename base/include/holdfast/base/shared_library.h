#pragma once

// A library that is loaded at run time, so that the program also starts on a machine without it: CUDA's
// libraries, NCCL, NVML.
//
// HOLDFAST_LIBRARY_PATH, a list of folders separated by colons, is searched before the system's own
// places. In each folder, nvidia/*/lib is searched too, where Python packages keep NVIDIA's libraries.
// So the site-packages folder of a Python environment is enough.
//
//   const SharedLibrary nccl = SharedLibrary::load("libnccl.so.2");
//   auto* const version = nccl.find<int(int*)>("ncclGetVersion");
//   if (version == nullptr) throw Error(ErrorCode::unavailable, nccl.path() + " is not NCCL");

#include <string>
#include <type_traits>
#include <vector>

namespace holdfast {

class SharedLibrary {
 public:
  // Loads `name`: a file name such as "libnccl.so.2", which is searched for, or a path, which is tried
  // as it is. Throws Error{unavailable} with the loader's reason for each place. Any thread.
  static SharedLibrary load(const std::string& name);

  // The function of that name; null when the library does not have it. The caller must know its type.
  template <class Function>
  Function* find(const char* symbol) const {
    static_assert(std::is_function_v<Function>);
    return reinterpret_cast<Function*>(address(symbol));
  }

  // The path of the library's file, or the name when the loader does not know the path.
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(void* handle, const std::string& name);

  void* address(const char* symbol) const;

  // Never closed: libraries with threads and thread-local objects of their own, such as CUDA's, do not
  // survive that.
  void* handle_ = nullptr;
  std::string path_;
};

// The paths that load() tries for `name`, in order. The last one is the bare name, which stands for
// the system's own search. `folders` is the value of HOLDFAST_LIBRARY_PATH.
std::vector<std::string> library_candidates(const std::string& name, const std::string& folders);

}  // namespace holdfast
