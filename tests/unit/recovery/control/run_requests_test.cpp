// Requests against a state and a clock that the test sets, without socket or processes.

#include "control/run_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class RunRequestsTest : public testing::Test {
 protected:
  RunRequestsTest() { state_.phase = RunPhase::running; }

  // Null while there is no answer.
  Json ask(const Json& request) {
    answer_ = nullptr;
    requests_.take(
        request, [this](const Json& body) { answer_ = body; }, now_);
    return answer_;
  }

  std::string error_of(const Json& request) {
    const Json answer = ask(request);
    EXPECT_EQ(answer.at("ok"), false);
    return answer.at("error");
  }

  State state_ = initial_state({.replicas = 2}, 0);
  Moment now_{};
  bool obeys_ = true;
  RestartCounts restarts_;
  std::vector<int> scaled_;
  std::vector<int> asked_;
  Json answer_;
  RunRequests requests_{{.max_replicas = 4,
                         .state = [this]() -> const State& { return state_; },
                         .member_statuses = [] { return std::map<int, MemberStatus>(); },
                         .restarts = [this]() -> const RestartCounts& { return restarts_; },
                         .address_of = [](int host) { return host == 0 ? "10.0.0.2" : ""; },
                         .scale =
                             [this](int replicas) {
                               scaled_.push_back(replicas);
                               if (obeys_) state_.target = replicas;
                             },
                         .ask_for_savepoint = [this](int number) { asked_.push_back(number); }}};
};

TEST_F(RunRequestsTest, ReportsTheAddressesOfHosts) {
  EXPECT_FALSE(ask({{"command", "status"}}).contains("hosts"));
  state_.hosts.resize(2);

  const Json hosts = ask({{"command", "status"}}).at("hosts");

  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].at("address"), "10.0.0.2");
  EXPECT_EQ(hosts[1].at("address"), "");
}

TEST_F(RunRequestsTest, ReportsTheLargestNumberOfReplicas) {
  const Json answer = ask({{"command", "status"}});

  EXPECT_EQ(answer.at("ok"), true);
  EXPECT_EQ(answer.at("phase"), "running");
  EXPECT_EQ(answer.at("max_replicas"), 4);
}

TEST_F(RunRequestsTest, ReportsHowManySavepointRequestsAreOpen) {
  ask({{"command", "snapshot"}});
  ask({{"command", "snapshot"}});
  requests_.savepoint_made(1, "run/a.h5", 12);

  EXPECT_EQ(ask({{"command", "status"}}).at("open_savepoint_requests"), 1);
}

TEST_F(RunRequestsTest, ScalesWithinTheLimits) {
  EXPECT_EQ(ask({{"command", "scale"}, {"replicas", 4}}).at("target"), 4);
  EXPECT_THAT(scaled_, ElementsAre(4));
}

TEST_F(RunRequestsTest, RefusesRequestsToAProgramThatDoesNotRegister) {
  state_.policy.all_start_together = true;

  EXPECT_THAT(error_of({{"command", "scale"}, {"replicas", 3}}), HasSubstr("does not register"));
  EXPECT_THAT(error_of({{"command", "snapshot"}}), HasSubstr("does not register"));

  EXPECT_TRUE(scaled_.empty());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(RunRequestsTest, RefusesImpossibleNumbers) {
  for (const Json& replicas :
       {Json(0), Json(-1), Json(5), Json(1e300), Json(4294967298), Json("2"), Json(nullptr), Json::array({2})}) {
    EXPECT_THAT(error_of({{"command", "scale"}, {"replicas", replicas}}), HasSubstr("1 to 4")) << replicas;
  }
  EXPECT_THAT(error_of({{"command", "scale"}}), HasSubstr("1 to 4"));
  EXPECT_TRUE(scaled_.empty());
}

TEST_F(RunRequestsTest, RefusesToScaleARunThatEnds) {
  obeys_ = false;

  EXPECT_THAT(error_of({{"command", "scale"}, {"replicas", 3}}), HasSubstr("ending"));
}

TEST_F(RunRequestsTest, RefusesUnknownCommands) {
  EXPECT_THAT(error_of({{"command", "destroy"}}), HasSubstr("\"destroy\" is not one of"));
  EXPECT_THAT(error_of({{"command", 7}}), HasSubstr("cannot be read"));
  EXPECT_THAT(error_of(Json::object()), HasSubstr("cannot be read"));
}

TEST_F(RunRequestsTest, AnswersForASavepointWhenItIsMade) {
  EXPECT_TRUE(ask({{"command", "snapshot"}}).is_null());
  ASSERT_THAT(asked_, ElementsAre(1));

  requests_.savepoint_made(1, "run/a.h5", 12);

  EXPECT_EQ(answer_, (Json{{"ok", true}, {"path", "run/a.h5"}, {"step", 12}}));
}

TEST_F(RunRequestsTest, PassesOnTheSentenceOfAFailure) {
  ask({{"command", "snapshot"}});

  requests_.savepoint_not_made(1, "the disk is full");

  EXPECT_EQ(answer_.at("error"), "the disk is full");
}

TEST_F(RunRequestsTest, AsksEachGenerationForOpenSavepoints) {
  state_.phase = RunPhase::gathering;
  ask({{"command", "snapshot"}});
  EXPECT_TRUE(asked_.empty());

  state_.phase = RunPhase::running;
  requests_.generation_opened();
  requests_.generation_opened();
  requests_.savepoint_made(1, "run/a.h5", 12);
  requests_.generation_opened();

  EXPECT_THAT(asked_, ElementsAre(1, 1));
}

TEST_F(RunRequestsTest, RefusesASavepointThatTakesTooLong) {
  ask({{"command", "snapshot"}, {"seconds", 5}});
  requests_.look(now_ + 4s);
  ASSERT_TRUE(answer_.is_null());

  requests_.look(now_ + 5s);

  EXPECT_EQ(answer_.at("ok"), false);
}

TEST_F(RunRequestsTest, RefusesASavepointOfARunThatEnds) {
  ask({{"command", "snapshot"}});
  requests_.run_ended("finished");
  EXPECT_THAT(answer_.at("error").get<std::string>(), HasSubstr("finished"));

  state_.is_stop_requested = true;
  EXPECT_THAT(error_of({{"command", "snapshot"}}), HasSubstr("ending"));
  state_.is_stop_requested = false;
  state_.phase = RunPhase::finishing;
  EXPECT_THAT(error_of({{"command", "snapshot"}}), HasSubstr("ending"));
}

TEST_F(RunRequestsTest, RefusesImpossibleTimes) {
  for (const Json& seconds : {Json(0), Json(-1), Json(3601), Json("10"), Json(0.5)}) {
    EXPECT_THAT(error_of({{"command", "snapshot"}, {"seconds", seconds}}), HasSubstr("1 to 3600")) << seconds;
  }
  EXPECT_TRUE(asked_.empty());
}

TEST_F(RunRequestsTest, LimitsHowManyRequestsWait) {
  for (std::size_t i = 0; i < SavepointRequests::kMost; ++i) EXPECT_TRUE(ask({{"command", "snapshot"}}).is_null());

  EXPECT_THAT(error_of({{"command", "snapshot"}}), HasSubstr("are waiting already"));
}

}  // namespace
}  // namespace holdfast::recovery
