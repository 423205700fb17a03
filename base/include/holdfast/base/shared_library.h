#pragma once

// A library of somebody else that is looked for while the program runs, so that the program starts where it is missing:
// those of GPUs. HOLDFAST_LIBRARY_PATH, folders with colons between them, comes before the system's own search; of each
// folder the folders nvidia/*/lib are looked through, too, which is where Python's packages have them. So the
// site-packages folder of a Python environment is enough.

#include <string>
#include <type_traits>
#include <vector>

namespace holdfast {

class SharedLibrary {
 public:
  // `name` as the loader takes it, "libnccl.so.2", or a path, which is the only one that is tried then. Throws
  // Error{unavailable} with the loader's reasons when none can be loaded. Any thread.
  static SharedLibrary load(const std::string& name);

  // Null where the library has no such symbol.
  template <class Function>
  Function* find(const char* symbol) const {
    static_assert(std::is_function_v<Function>);
    return reinterpret_cast<Function*>(address(symbol));
  }

  // Of its file, where the loader tells it; else the name.
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(void* handle, const std::string& name);

  void* address(const char* symbol) const;

  // Never closed: libraries with threads and thread-local objects of their own, as those of CUDA, do not survive that.
  void* handle_ = nullptr;
  std::string path_;
};

// Where `name` is tried, in order; the last is the bare name, which stands for the system's own search. `folders` is
// the value of HOLDFAST_LIBRARY_PATH.
std::vector<std::string> library_candidates(const std::string& name, const std::string& folders);

}  // namespace holdfast
