#pragma once

// Tests that need a CUDA device. On a machine without a device they are skipped with a message. If there is a device
// but it cannot be used, they fail.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"

namespace holdfast {

// The device's back end; null on a machine without a device.
std::unique_ptr<compute::Backend> backend_under_test(Precision precision);

// Floats on the device, beginning `padding` floats after an aligned address.
class DeviceArray {
 public:
  DeviceArray(MemorySpace& memory, std::span<const float> values, std::size_t padding = 0);

  float* data() const { return memory_.get() + padding_; }
  std::span<float> span() const { return {data(), size_}; }
  std::vector<float> values() const;

 private:
  MemorySpace* space_;
  std::size_t size_;
  std::size_t padding_;
  std::shared_ptr<float[]> memory_;
};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override;
  virtual Precision precision() const { return Precision::f32; }

  compute::Backend& backend() { return *backend_; }
  compute::DeviceKernels& kernels() { return *backend_->device_kernels(); }
  MemorySpace& memory() { return backend_->memory(); }

  DeviceArray upload(std::span<const float> values, std::size_t padding = 0) { return {memory(), values, padding}; }

 private:
  std::unique_ptr<compute::Backend> backend_;
};

// Values from -1 to 1; equal seeds give equal values.
std::vector<float> random_values(std::uint64_t seed, std::size_t count);

// Says how many floats differ in a bit, and which is the first; empty if no float does.
std::string bit_differences(std::span<const float> expected, std::span<const float> actual);

}  // namespace holdfast
