#pragma once

// How kernels are launched: how many blocks, and what is said when it fails.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>

namespace holdfast::compute {

struct LaunchSize {
  const char* name;
  std::int64_t value;
};

// Called behind every launch. Throws Error naming the kernel and the sizes that it was launched for.
void check_launch(const char* kernel, std::initializer_list<LaunchSize> sizes);

// Blocks of `per_block` each that hold `count`, at least 1. Asserts that a grid may have so many.
unsigned block_count(std::int64_t count, std::int64_t per_block);

}  // namespace holdfast::compute
