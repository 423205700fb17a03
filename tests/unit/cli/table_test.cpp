#include "table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace holdfast::cli {
namespace {

std::string written(const Table& table) {
  std::ostringstream out;
  table.write(out);
  return out.str();
}

TEST(Table, PutsNumbersAtTheRightAndTextAtTheLeft) {
  Table table({"name", ">bytes"});
  table.add({"a", "12345678"});
  table.add({"longer", "1"});

  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(written(table),
            "name       bytes\n"
            "a       12345678\n"
            "longer         1\n");
}

TEST(Table, LeavesNoSpacesAtTheEnd) {
  Table table({"a", "b"});
  table.add({"x", "long"});
  table.add({"y", ""});

  EXPECT_EQ(written(table), "a  b\nx  long\ny\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  Table table({"n", ">v"});
  table.add({"é", "1"});

  EXPECT_EQ(written(table), "n  v\né  1\n");
}

TEST(Table, ReplacesControlCharacters) {
  Table table({"n"});
  table.add({"a\nb"});

  EXPECT_EQ(written(table), "n\na?b\n");
}

// A name of 5 MB from an unknown file widened every row to 5 MB.
TEST(Table, CutsLongCells) {
  Table table({"name", "type"});
  table.add({std::string(5'000'000, 'x'), "f32"});
  std::ostringstream out;

  table.write(out);

  EXPECT_LT(out.str().size(), 2000U);
  EXPECT_NE(out.str().find("xxx...  f32"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::cli
