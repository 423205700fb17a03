#include "bytes/transpose.h"

#include <gtest/gtest.h>

#include "unit/exchange/support/zip_builder.h"

namespace holdfast::format {
namespace {

using testing::bytes_of;
using testing::text_of;

std::string transposed(std::string_view text, std::size_t element_bytes, const std::vector<std::uint64_t>& shape,
                       const std::vector<std::size_t>& axes) {
  return text_of(transpose(bytes_of(text), element_bytes, shape, axes));
}

TEST(Transpose, PutsElementsInTheOrderOfTheAxes) {
  EXPECT_EQ(transposed("abcdef", 1, {2, 3}, {1, 0}), "adbecf");
  EXPECT_EQ(transposed("abcdef", 1, {2, 3}, {0, 1}), "abcdef");
  // Element (i, j, k) is 'a' + 12 i + 4 j + k.
  EXPECT_EQ(transposed("abcdefghijklmnopqrstuvwx", 1, {2, 3, 4}, {2, 0, 1}), "aeimqubfjnrvcgkoswdhlptx");
}

TEST(Transpose, MovesWholeElements) {
  EXPECT_EQ(transposed("AaBbCcDd", 2, {2, 2}, {1, 0}), "AaCcBbDd");
  EXPECT_EQ(transposed("1111222233334444", 4, {2, 2}, {1, 0}), "1111333322224444");
  EXPECT_EQ(transposed("11111111222222223333333344444444", 8, {2, 2}, {1, 0}), "11111111333333332222222244444444");
}

TEST(Transpose, AcceptsScalarsAndEmptyArrays) {
  EXPECT_EQ(transposed("abcd", 4, {}, {}), "abcd");
  EXPECT_EQ(transposed("", 4, {2, 0, 3}, {2, 1, 0}), "");
}

}  // namespace
}  // namespace holdfast::format
