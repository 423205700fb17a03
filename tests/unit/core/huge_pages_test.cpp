#include "core/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "holdfast/core/memory_space.h"
#include "holdfast/core/tensor.h"

namespace holdfast {
namespace {

// Whether the kernel has noted the wish for the middle of this memory: "hg" among the flags of its mapping.
bool is_asked_for(const void* memory, std::size_t bytes) {
  const std::uintptr_t middle = reinterpret_cast<std::uintptr_t>(memory) + bytes / 2;
  std::ifstream file("/proc/self/smaps");
  bool is_within = false;
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find('-');
    if (dash != std::string::npos && dash < line.find(' ') && line.find(':') > dash) {
      std::size_t end_of_number = 0;
      const std::uintptr_t begin = std::stoull(line, &end_of_number, 16);
      const std::uintptr_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
      is_within = end_of_number == dash && begin <= middle && middle < end;
    } else if (is_within && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

bool has_huge_pages() {
  return std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good();
}

TEST(HugePages, AreAskedForInLargeTensorsAlone) {
  if (!has_huge_pages()) GTEST_SKIP() << "this kernel has no transparent huge pages";

  const Tensor large{Shape{1024, 4096}};
  const Tensor bytes{Shape{1024, 16384}, DType::u8};
  const Tensor small{Shape{16}};

  EXPECT_TRUE(is_asked_for(large.values().data(), large.bytes().size()));
  EXPECT_TRUE(is_asked_for(bytes.bytes().data(), bytes.bytes().size()));
  EXPECT_FALSE(is_asked_for(small.values().data(), small.bytes().size()));
}

// Arenas of weights and of activations, and scratch memory of products.
TEST(HugePages, AreAskedForInLargeArraysOfFloatsAlone) {
  if (!has_huge_pages()) GTEST_SKIP() << "this kernel has no transparent huge pages";
  constexpr std::size_t kLarge = kLargeBlockBytes / sizeof(float);

  const auto large = allocate_floats(kLarge);
  const auto small = allocate_floats(16);
  const std::shared_ptr<float[]> arena = host_memory().allocate(kLarge);

  EXPECT_TRUE(is_asked_for(large.get(), kLargeBlockBytes));
  EXPECT_TRUE(is_asked_for(arena.get(), kLargeBlockBytes));
  EXPECT_FALSE(is_asked_for(small.get(), 64));
}

TEST(AllocateFloats, BeginsAtACacheLineOrAHugePage) {
  for (const std::size_t floats : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
    const auto memory = allocate_floats(floats);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % kArrayAlignmentBytes, 0U) << floats;
  }
  const auto large = allocate_floats(kLargeBlockBytes / sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.get()) % kHugePageBytes, 0U);
}

TEST(HugePages, LeaveTensorsOfZeros) {
  const Tensor tensor{Shape{1024, 4096}};

  for (const float value : tensor.values()) ASSERT_EQ(value, 0.0F);
}

}  // namespace
}  // namespace holdfast
