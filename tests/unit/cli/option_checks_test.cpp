#include "option_checks.h"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

// What the check says of a text; empty when it accepts the text.
std::string objection(const CLI::Validator& check, std::string text) {
  return check(text);
}

TEST(OptionChecks, AcceptNumbersWithoutAnUpperLimit) {
  EXPECT_EQ(objection(at_least(0), "0"), "");
  EXPECT_EQ(objection(at_least(0), "1e300"), "");
  EXPECT_EQ(objection(whole_from(1), "9000000000000000000"), "");
}

TEST(OptionChecks, NameOnlyTheLowestNumber) {
  EXPECT_EQ(objection(at_least(0), "-1"), "-1 is not a number of at least 0");
  EXPECT_EQ(objection(at_least(0), "inf"), "inf is not a number of at least 0");
  EXPECT_EQ(objection(at_least(0), "nan"), "nan is not a number of at least 0");
  EXPECT_EQ(objection(whole_from(1), "0"), "0 is not a whole number of at least 1");
  EXPECT_EQ(objection(whole_from(0), "1.5"), "1.5 is not a whole number of at least 0");
  EXPECT_EQ(objection(whole_from(0), "many"), "many is not a whole number of at least 0");
}

// CLI11's range accepted NaN, which became -9223372036854775808 ms.
TEST(OptionChecks, RefuseNanAndNumbersOutsideOfARange) {
  EXPECT_EQ(objection(between(0.5, 100), "0.5"), "");
  EXPECT_EQ(objection(between(0.5, 100), "100"), "");
  EXPECT_EQ(objection(between(0.5, 100), "nan"), "nan is not a number from 0.5 to 100");
  EXPECT_EQ(objection(between(0.5, 100), "1e300"), "1e300 is not a number from 0.5 to 100");
}

// CLI11 took -1 for 18446744073709551615.
TEST(OptionChecks, RefuseWholeNumbersThatTheTypeCannotHold) {
  EXPECT_EQ(objection(whole_of<std::uint64_t>(0), "18446744073709551615"), "");
  EXPECT_EQ(objection(whole_of<std::uint64_t>(0), "18446744073709551616"),
            "18446744073709551616 is not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(objection(whole_of<std::uint64_t>(0), "-1"), "-1 is not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(objection(whole_of<int>(0), "99999999999"), "99999999999 is not a whole number from 0 to 2147483647");
  EXPECT_EQ(objection(whole_of<int>(1), "0"), "0 is not a whole number from 1 to 2147483647");
  EXPECT_EQ(objection(whole_of<int>(0), "3x"), "3x is not a whole number from 0 to 2147483647");
}

TEST(OptionChecks, RefuseNegativeSizes) {
  std::string size = "2KiB";

  EXPECT_EQ(size_in_bytes()(size), "");
  EXPECT_EQ(size, "2048");
  EXPECT_EQ(objection(size_in_bytes(), "-1"), "-1 is not a size such as 10MB or 2GiB");
}

enum class Colour { red, green };

TEST(OptionChecks, NameTheWordsAndNotTheirNumbers) {
  const CLI::Validator check = one_of<Colour>({{"red", Colour::red}, {"green", Colour::green}});

  EXPECT_EQ(objection(check, "green"), "");
  EXPECT_EQ(objection(check, "blue"), "blue is not one of red, green");
  EXPECT_EQ(objection(check, "1"), "1 is not one of red, green");
}

}  // namespace
}  // namespace holdfast::cli
