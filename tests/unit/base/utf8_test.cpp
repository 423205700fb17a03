#include "holdfast/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, AcceptsTheFirstAndLastCharacterOfEachLength) {
  for (const std::string_view text :
       {""sv, "\x01"sv, "\x7F"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv, "\xEE\x80\x80"sv,
        "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv, "a\xC3\xA9z"sv}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndNumbersBeyondUnicode) {
  for (const std::string_view text :
       {"\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x9F\xBF"sv, "\xF0\x8F\xBF\xBF"sv, "\xED\xA0\x80"sv, "\xED\xBF\xBF"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

TEST(Utf8, RefusesNul) {
  EXPECT_FALSE(is_utf8("a\0b"sv));
}

TEST(Utf8, RefusesCharactersThatAreCutOffOrHaveNoBeginning) {
  for (const std::string_view text : {"\xC3"sv, "\xE2\x82"sv, "\xF0\x9F\x98"sv, "\x80"sv, "a\xBF"sv, "\xC3z"sv,
                                      "\xE2\x82z"sv, "\xF0\x9F\x98z"sv, "\xE2z\xAC"sv}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

// All encodings of all characters, made from the definition.
TEST(Utf8, AcceptsEveryCharacterExceptSurrogates) {
  for (std::uint32_t code = 1; code < 0x110000; ++code) {
    std::string text;
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xC0 | (code >> 6)), tail(0);
    } else if (code < 0x10000) {
      text += static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0);
    } else {
      text += static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0);
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(is_utf8(text), !is_surrogate) << code;
  }
}

}  // namespace
}  // namespace holdfast
