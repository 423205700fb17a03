#pragma once

// The facts that `holdfast doctor` collects: cores, memory, GPUs, and the libraries for training on GPUs.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/recovery/gpu_monitor.h"

namespace holdfast::cli {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const Version&) const = default;
};
// "9.19.0"
std::string to_string(const Version& version);

// Each library packs its version into one number in its own way.
Version version_of_cuda(int number);    // 13000 is 13.0
Version version_of_cublas(int number);  // 130002 is 13.0.2
Version version_of_cudnn(int number);   // 91900 is 9.19.0, 8907 is 8.9.7
Version version_of_nccl(int number);    // 22809 is 2.28.9, 2804 is 2.8.4

struct LibraryFacts {
  std::string name{};
  std::string path{};  // empty: not found
  std::optional<Version> version{};
  std::string problem{};  // the loader's message
};

struct MachineFacts {
  int cores = 1;
  std::uint64_t memory_bytes = 0;
  std::optional<std::uint64_t> shared_memory_bytes{};  // the size of /dev/shm; empty: it does not exist
  std::optional<std::uint64_t> locked_memory_bytes{};  // the limit of a process; empty: no limit
  std::string hdf5_plugin{};                           // path of the plugin for compressed savepoints; empty: not found

  int nvidia_cards = 0;  // on the PCI bus, with a driver or without
  std::optional<recovery::GpuSurvey> gpus{};
  bool has_driver = false;  // also true for a driver that does not work
  std::string why_no_gpus{};
  std::vector<int> cuda_order{};  // cuda:n is gpus->devices[cuda_order[n]]
  bool is_cuda_order_known = true;
  bool is_instance_named = false;  // CUDA_VISIBLE_DEVICES names an instance of a split device (MIG)

  LibraryFacts cuda_runtime{};
  LibraryFacts cublas{};
  LibraryFacts cudnn{};
  LibraryFacts nccl{};

  bool was_back_end_tried = false;              // false without a driver, and when the driver hangs
  std::string back_end_problem{};               // why the back end cannot train; empty: it can
  std::vector<std::string> back_end_devices{};  // names of devices, indexed by CUDA's numbers
};

// "cuda:0", the name that training uses. Empty when CUDA does not show the device.
std::string cuda_name_of(const MachineFacts& facts, const recovery::GpuFacts& device);

// Loads the libraries, but creates no context on a device. Takes a few seconds, and at most about 20 s if the driver
// hangs.
MachineFacts look_at_machine();

}  // namespace holdfast::cli
