// What connections between hosts begin with, there and back.

#include "links/link_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LinkToken, TravelsAsBytes) {
  const LinkToken token{.key = new_link_key(), .exchange = 0x01020304, .lane = 7};

  EXPECT_EQ(LinkToken::from(token.bytes()), token);
  EXPECT_EQ(token.bytes()[16], 4);
  EXPECT_EQ(token.bytes()[20], 7);
}

TEST(LinkToken, DiffersByKeyExchangeAndLane) {
  const LinkKey key = new_link_key();
  const LinkToken token{.key = key, .exchange = 1, .lane = 2};

  EXPECT_NE(token, (LinkToken{.key = new_link_key(), .exchange = 1, .lane = 2}));
  EXPECT_NE(token, (LinkToken{.key = key, .exchange = 2, .lane = 2}));
  EXPECT_NE(token, (LinkToken{.key = key, .exchange = 1, .lane = 1}));
}

TEST(LinkKey, TravelsAsText) {
  const LinkKey key = new_link_key();

  EXPECT_EQ(to_text(key).size(), 32U);
  EXPECT_EQ(link_key_from(to_text(key)), key);
}

TEST(LinkKey, IsRefusedWithoutBeingQuoted) {
  for (const std::string& text : {std::string(), std::string(31, 'a'), std::string(33, 'a'), std::string(32, 'G')}) {
    EXPECT_EQ(code_thrown_by([&] { link_key_from(text); }), ErrorCode::input_output) << text;
  }
  EXPECT_THAT(sentence_thrown_by([] { link_key_from("00112233445566778899aabbccddeef"); }), Not(HasSubstr("00112233")));
}

}  // namespace
}  // namespace holdfast::recovery
