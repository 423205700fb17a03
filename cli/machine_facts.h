#pragma once

// What `holdfast doctor` sees of this machine: its cores and memory, its GPUs, and the libraries that train on them.

#include <array>
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

// How each library counts its versions in one number.
Version version_of_cuda(int number);    // 13000 is 13.0
Version version_of_cublas(int number);  // 130002 is 13.0.2
Version version_of_cudnn(int number);   // 91900 is 9.19.0, 8907 is 8.9.7
Version version_of_nccl(int number);    // 22809 is 2.28.9, 2804 is 2.8.4

struct LibraryFacts {
  std::string name{};
  std::string path{};  // empty: it was not found
  std::optional<Version> version{};
  std::string problem{};  // what the loader said
};

struct MachineFacts {
  int cores = 1;
  std::uint64_t memory_bytes = 0;
  std::optional<std::uint64_t> shared_memory_bytes{};  // of /dev/shm; empty: there is none
  std::optional<std::uint64_t> locked_memory_bytes{};  // that a process may have; empty: as much as it wants
  std::string hdf5_plugin{};                           // that reads compressed savepoints; empty: not found

  int nvidia_cards = 0;  // that Linux sees on the PCI bus, with a driver or without
  std::optional<recovery::GpuSurvey> gpus{};
  bool has_driver = false;  // though it may not work
  std::string why_no_gpus{};
  std::vector<int> cuda_order{};  // cuda:n is gpus->devices[cuda_order[n]]
  bool is_cuda_order_known = true;
  bool is_instance_named = false;  // a part of a device (MIG), in CUDA_VISIBLE_DEVICES

  LibraryFacts cuda_runtime{};
  LibraryFacts cublas{};
  LibraryFacts cudnn{};
  LibraryFacts nccl{};

  bool was_back_end_tried = false;              // not where no driver is, or one that hangs
  std::string back_end_problem{};               // why it cannot train; empty: it can
  std::vector<std::string> back_end_devices{};  // names, by CUDA's numbers
};

// Loads the libraries; makes no context on a device. Takes a few seconds at most, also where a driver hangs.
MachineFacts look_at_machine();

}  // namespace holdfast::cli
