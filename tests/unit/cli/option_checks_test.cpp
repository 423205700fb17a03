#include "option_checks.h"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

// Empty: it takes the text.
std::string objection(const CLI::Validator& check, std::string text) {
  return check(text);
}

TEST(OptionChecks, TakeNumbersWithoutAHighestOne) {
  EXPECT_EQ(objection(at_least(0), "0"), "");
  EXPECT_EQ(objection(at_least(0), "1e300"), "");
  EXPECT_EQ(objection(whole_from(1), "9000000000000000000"), "");
}

TEST(OptionChecks, SayTheLowestNumberAndNoOther) {
  EXPECT_EQ(objection(at_least(0), "-1"), "-1 is no number from 0 on");
  EXPECT_EQ(objection(at_least(0), "inf"), "inf is no number from 0 on");
  EXPECT_EQ(objection(at_least(0), "nan"), "nan is no number from 0 on");
  EXPECT_EQ(objection(whole_from(1), "0"), "0 is no whole number from 1 on");
  EXPECT_EQ(objection(whole_from(0), "1.5"), "1.5 is no whole number from 0 on");
  EXPECT_EQ(objection(whole_from(0), "many"), "many is no whole number from 0 on");
}

enum class Colour { red, green };

TEST(OptionChecks, NameTheWordsAndNotTheirNumbers) {
  const CLI::Validator check = one_of<Colour>({{"red", Colour::red}, {"green", Colour::green}});

  EXPECT_EQ(objection(check, "green"), "");
  EXPECT_EQ(objection(check, "blue"), "blue is none of red, green");
  EXPECT_EQ(objection(check, "1"), "1 is none of red, green");
}

}  // namespace
}  // namespace holdfast::cli
