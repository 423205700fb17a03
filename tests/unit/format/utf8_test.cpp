#include "utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::format {
namespace {

TEST(Utf8, TakesTextOfEveryLength) {
  for (const char* text : {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "a\xC3\xBC\xE5\xB1\xA4z"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
}

TEST(Utf8, RefusesWhatIsNone) {
  for (const char* text : {"\x80", "\xBF", "\xC2", "\xC2z", "\xC1\x81", "\xC0\x80", "\xE0\x9F\xBF", "\xE2\x82",
                           "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
                           "a\xF0\x90\x80", "\xE2\x28\xA1", "\xE2\x82\x28", "\xF0\x90\x80z"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
  EXPECT_FALSE(is_utf8(std::string(1, '\0')));
}

}  // namespace
}  // namespace holdfast::format
