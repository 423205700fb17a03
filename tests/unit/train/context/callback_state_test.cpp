#include "holdfast/train/callback_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "holdfast/train/callback.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

struct Remembering final : public Callback {
  std::string name() const override { return "remembering"; }
  void describe_state(CallbackFields& fields) override {
    fields.add("long", whole).add("int", count).add("bool", flag).add("double", real).add("float", single);
    fields.add("text", text).add("list", list);
  }

  std::int64_t whole = 0;
  int count = 0;
  bool flag = false;
  double real = 0;
  float single = 0;
  std::string text;
  std::vector<double> list;
};

TEST(CallbackState, GivesEachKindOfMemberBackWithItsBits) {
  Remembering written;
  written.whole = std::numeric_limits<std::int64_t>::min();
  written.count = -7;
  written.flag = true;
  written.real = 0.1;
  written.single = std::nextafter(0.1F, 1.0F);
  written.text = "a";
  written.list = {1, 0.3};
  Remembering read;

  read.restore(written.state());

  EXPECT_EQ(read.whole, written.whole);
  EXPECT_EQ(read.count, -7);
  EXPECT_TRUE(read.flag);
  EXPECT_EQ(read.real, 0.1);
  EXPECT_EQ(read.single, written.single);
  EXPECT_EQ(read.text, "a");
  EXPECT_EQ(read.list, written.list);
  EXPECT_EQ(read.state(), written.state());
}

TEST(CallbackState, KeepsWhatIsNotANumber) {
  Remembering written;
  written.single = std::numeric_limits<float>::quiet_NaN();
  Remembering read;

  read.restore(written.state());

  EXPECT_TRUE(std::isnan(read.single));
}

TEST(CallbackState, IsEmptyForACallbackThatDescribesNone) {
  struct Plain final : public Callback {
    std::string name() const override { return "plain"; }
  };
  Plain plain;

  EXPECT_TRUE(plain.state().empty());
  plain.restore({{"other", 1.0}});
}

// A program that was edited, and a savepoint of the one before.
TEST(CallbackState, RefusesASavepointThatDoesNotHaveItsMembers) {
  Remembering read;
  const auto refusal = [&](const std::string& name, std::optional<CallbackValue> value) {
    CallbackState state = Remembering().state();
    state.erase(name);
    if (value) state[name] = *value;
    return sentence_thrown_by([&] { read.restore(state); });
  };

  EXPECT_THAT(refusal("text", std::nullopt),
              HasSubstr("of the callback \"remembering\" has no \"text\", which describe_state() names"));
  EXPECT_THAT(refusal("text", 1.0), HasSubstr("has another kind of \"text\""));
  EXPECT_THAT(refusal("int", std::int64_t{1} << 40), HasSubstr("has a number out of range for \"int\""));
  EXPECT_THAT(refusal("bool", std::int64_t{2}), HasSubstr("has a number out of range for \"bool\""));
  EXPECT_THAT(refusal("float", 1e300), HasSubstr("has a number out of range for \"float\""));
}

TEST(CallbackState, RefusesTwoMembersOfOneName) {
  struct Twice final : public Callback {
    std::string name() const override { return "twice"; }
    void describe_state(CallbackFields& fields) override { fields.add("a", a).add("a", b); }
    double a = 0;
    double b = 0;
  };

  EXPECT_THAT(sentence_thrown_by([] { static_cast<void>(Twice().state()); }), HasSubstr("adds \"a\" twice"));
}

}  // namespace
}  // namespace holdfast
