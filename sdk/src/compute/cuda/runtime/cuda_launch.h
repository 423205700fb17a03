#pragma once

// Launching kernels: the number of blocks, and the error if a launch fails.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>

namespace holdfast::compute {

struct LaunchSize {
  const char* name;
  std::int64_t value;
};

// Must follow every launch. Throws an Error that names the kernel and the sizes if the launch failed.
void check_launch(const char* kernel, std::initializer_list<LaunchSize> sizes);

// How many blocks of `per_block` elements hold `count` elements; at least 1. Asserts that a grid may have so many.
unsigned block_count(std::int64_t count, std::int64_t per_block);

}  // namespace holdfast::compute
