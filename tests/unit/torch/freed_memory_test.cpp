#include "freed_memory.h"
#include "support/sanitizer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace holdfast::torch {
namespace {

constexpr std::size_t kArrayBytes = std::size_t{1} << 20;
constexpr std::size_t kArrays = 48;

// Allocates, touches and frees arrays as a forward and a backward pass do.
void imitate_step() {
  std::vector<void*> arrays;
  for (std::size_t i = 0; i < kArrays; ++i) {
    auto* const array = static_cast<volatile char*>(std::malloc(kArrayBytes));
    ASSERT_NE(array, nullptr);
    for (std::size_t byte = 0; byte < kArrayBytes; byte += 1024) array[byte] = 1;
    arrays.push_back(const_cast<char*>(array));
  }
  for (auto array = arrays.rbegin(); array != arrays.rend(); ++array) std::free(*array);
}

long pages_of_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(FreedMemory, IsUsedAgainByTheNextStep) {
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "sanitizers have allocators of their own";
  keep_freed_memory();
  imitate_step();

  const long before = pages_of_process();
  for (int step = 0; step < 3; ++step) imitate_step();
  const long touched = pages_of_process() - before;

  // A tenth of one step, for what the process touches otherwise.
  EXPECT_LT(touched, static_cast<long>(kArrays * kArrayBytes) / sysconf(_SC_PAGESIZE) / 10);
}

}  // namespace
}  // namespace holdfast::torch
