#include "nn/graph/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(JsonConfigWriter, KeepsTheOrderAndTheShortestNumbers) {
  JsonConfigWriter writer;
  writer.number("rate", 0.1F);
  writer.text("mode", "same");
  writer.integers("axes", {2, 1});
  writer.numbers("numbers", {0.5F, std::nullopt});
  writer.boolean("use_bias", true);

  EXPECT_EQ(writer.object().dump(), R"({"rate":0.1,"mode":"same","axes":[2,1],"numbers":[0.5,null],"use_bias":true})");
}

TEST(JsonConfigWriter, RefusesWhatNoTextCanHold) {
  JsonConfigWriter writer;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal([&] { writer.number("rate", nan); }), HasSubstr("its option \"rate\" is nan"));
  EXPECT_THAT(refusal([&] { writer.numbers("list", {1.0F, nan}); }), HasSubstr("its option \"list\" is nan"));
  EXPECT_THAT(refusal([&] { writer.text("mode", "\xff"); }), HasSubstr("other bytes than UTF-8"));
}

TEST(JsonConfigWriter, RefusesAKeyThatWasWritten) {
  JsonConfigWriter writer;
  writer.integer("units", 3);
  EXPECT_THAT(refusal([&] { writer.number("units", 4); }), HasSubstr("writes \"units\" twice"));
}

}  // namespace
}  // namespace holdfast
