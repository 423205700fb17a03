#include "compute/cuda/runtime/small_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace holdfast::compute {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr unsigned char kNotCopied = 0xEE;

// Copies in words and in bytes, with neighbours on both sides.
TEST(SmallCopies, CopyTheirBytesAndNoOthers) {
  Bytes from(kMostSmallBytes + 8);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i % 251);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4}, std::size_t{1023}, kMostSmallBytes}) {
    for (const std::size_t offset : {0, 1, 4}) {
      Bytes to(from.size(), kNotCopied);
      Bytes expected(from.size(), kNotCopied);
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(offset), bytes, expected.begin() + 4);

      copy_small_to_host(from.data() + offset, to.data() + 4, bytes, nullptr);

      EXPECT_TRUE(to == expected) << bytes << " bytes, " << offset << " after an aligned address";
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
