// A cut of a host that is simulated at addresses of one machine, where no network can be cut: its agent stands still,
// so nothing is heard of it and it renews no fence. Its replicas live, which is the danger of a cut.
// namespaces_test.cpp cuts networks. docs/decisions/lost-hosts.md

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "integration/hosts/gated_hosts_run.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostsWhoseAgentStandsStill : public GatedHostsRun {
 protected:
  HostsWhoseAgentStandsStill() : GatedHostsRun("127.0.0.2") { digits_ = {{"--save-every", "1"}}; }

  std::unique_ptr<RunningProgram> start_program(int, const std::string& path,
                                                const std::vector<std::string>& arguments) const override {
    return std::make_unique<RunningProgram>(path, arguments);
  }
  void kill_processes(int host) override { hosts_[host]->signal(SIGKILL); }

  // A stopped agent would not hear that its run is over.
  void TearDown() override {
    for (const auto& [host, program] : hosts_) program->signal(SIGCONT);
    GatedHostsRun::TearDown();
  }
};

TEST_F(HostsWhoseAgentStandsStill, AreLostTakenBackAndLoseNoStep) {
  start_with({{.rank = 0}, {.rank = 0, .step = 12, .generation = 1}});
  wait_at_gate(0);

  hosts_[1]->signal(SIGSTOP);
  wait_for("host_lost");
  open_gate(0);
  wait_at_gate(1);
  hosts_[1]->signal(SIGCONT);
  wait_until_ready_to_join(1);
  open_gate(1);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(2, 1, 2));
  EXPECT_EQ(events("host_returned").size(), 1U);
  EXPECT_THAT(std::string(events("host_lost")[0].at("reason")), HasSubstr("did not answer"));
}

// The replica of the stopped agent is in the middle of a step when the others go on, and stays there until they are two
// steps further.
TEST_F(HostsWhoseAgentStandsStill, AreTakenBackFromTheMiddleOfAnOldStep) {
  start_with({{.rank = 1}, {.rank = 0, .step = 12, .generation = 1}});
  wait_at_gate(0);

  hosts_[1]->signal(SIGSTOP);
  wait_for("host_lost");
  wait_at_gate(1);
  open_gate(0);
  hosts_[1]->signal(SIGCONT);
  wait_until_ready_to_join(1);
  open_gate(1);

  expect_all_finished();
  expect_the_bits_of_one_host();
  expect_that_no_step_was_lost();
  EXPECT_THAT(generations(), ElementsAre(2, 1, 2));
}

}  // namespace
}  // namespace holdfast
