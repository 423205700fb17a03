#include "memory/savepoint_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class SavepointRequestsTest : public testing::Test {
 protected:
  int add(std::chrono::seconds patience = 10s) {
    const std::size_t index = answers_.size();
    answers_.emplace_back();
    return requests_.add([this, index](const nlohmann::json& body) { answers_[index] = body; }, start_ + patience);
  }

  const Moment start_{};
  SavepointRequests requests_;
  std::vector<nlohmann::json> answers_;  // null: not answered yet
};

TEST_F(SavepointRequestsTest, NumbersThemFromOne) {
  EXPECT_EQ(requests_.newest(), 0);

  EXPECT_EQ(add(), 1);
  EXPECT_EQ(add(), 2);

  EXPECT_EQ(requests_.newest(), 2);
}

TEST_F(SavepointRequestsTest, AnswersAllUpToANumberOnce) {
  add();
  add();
  add();

  requests_.answer(2, {{"step", 7}});
  requests_.answer(2, {{"step", 8}});

  EXPECT_EQ(answers_[0].at("step"), 7);
  EXPECT_EQ(answers_[1].at("step"), 7);
  EXPECT_TRUE(answers_[2].is_null());
  EXPECT_EQ(requests_.newest(), 3);
}

TEST_F(SavepointRequestsTest, RefusesRequestsAfterTheirDeadline) {
  add(10s);
  add(20s);

  requests_.look(start_ + 10s);

  EXPECT_EQ(answers_[0].at("ok"), false);
  EXPECT_TRUE(answers_[1].is_null());
}

TEST_F(SavepointRequestsTest, RefusesAllWithTheSentence) {
  add();

  requests_.refuse_all("the run ended");

  EXPECT_EQ(answers_[0].at("error"), "the run ended");
  EXPECT_EQ(requests_.newest(), 0);
}

TEST_F(SavepointRequestsTest, AcceptsNoMoreThanItsLimit) {
  for (std::size_t i = 0; i < SavepointRequests::kMost; ++i) EXPECT_NE(add(), 0);

  EXPECT_EQ(add(), 0);

  requests_.answer(1, {});
  EXPECT_NE(add(), 0);
}

}  // namespace
}  // namespace holdfast::recovery
