#pragma once

// Sentences about the memory of a device. They need no CUDA, so they are tested without a device.

#include <cstddef>
#include <string>

namespace holdfast::compute {

// "312 bytes", "1.5 MiB", "139.8 GiB".
std::string in_bytes(std::size_t bytes);

struct MemoryShortage {
  std::string device;  // "cuda:0 (NVIDIA H200)"
  std::size_t asked_bytes = 0;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// A sentence that says how much memory is missing and what helps.
std::string describe(const MemoryShortage& shortage);

}  // namespace holdfast::compute
