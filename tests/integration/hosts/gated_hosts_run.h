#pragma once

// Runs over several hosts in which ranks wait at gates until what a test waits for has happened. So nothing depends on
// which of two things is quicker.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "integration/hosts/hosts_run.h"

namespace holdfast {

// Where a rank waits until the test lets it go on.
struct Gate {
  int rank = 0;
  int step = 10;
  int generation = 0;
};

class GatedHostsRun : public HostsRun {
 protected:
  using HostsRun::HostsRun;

  // A run that failed ends sooner when no process waits at a gate.
  void TearDown() override {
    for (const std::string& mark : marks()) std::ofstream(mark + ".go") << "\n";
    HostsRun::TearDown();
  }

  // Options of a run with gates. A process that waits at one has not hung. For so long an agent without a head waits.
  // In the first generation rank R is on host R / replicas_.
  void prepare(const std::vector<Gate>& gates, const std::string& head_timeout = "300",
               const std::string& hang_after = "300") {
    options_ = {"--replicas", std::to_string(replicas_), "--hang-after", hang_after, "--head-timeout", head_timeout};
    for (const Gate& gate : gates) {
      // By itself this does nothing: no beat is due within a millisecond.
      options_.insert(
          options_.end(),
          {"--inject", "rank=" + std::to_string(gate.rank) + ",step=" + std::to_string(gate.step) +
                           ",generation=" + std::to_string(gate.generation) + ",fault=delay-beats,duration_ms=1"});
    }
  }

  void start_with(const std::vector<Gate>& gates, const std::string& head_timeout = "300") {
    prepare(gates, head_timeout);
    start_all(options_, preloading("libheld_faults.so"));
  }

  // The host is back after its loss: it was killed, and starts again.
  void start_again(int host) { hosts_[host] = start(host, options_, preloading("libheld_faults.so")); }

  // The marks of all ranks that wait at gates, or have waited.
  std::vector<std::string> marks() const {
    std::vector<std::string> found;
    if (!std::filesystem::exists(folder_ / "run/faults")) return found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run/faults")) {
      if (entry.path().extension() == ".fired") found.push_back(entry.path());
    }
    return found;
  }

  // The mark of a rank that waits at the gate with this index; empty before that.
  std::string mark_of(int gate) const {
    for (const std::string& mark : marks()) {
      if (std::filesystem::path(mark).filename().string().starts_with(std::to_string(gate) + "-")) return mark;
    }
    return "";
  }

  void wait_at_gate(int gate) const {
    ASSERT_TRUE(comes_true([this, gate] { return !mark_of(gate).empty(); })) << "no rank came to gate " << gate;
  }

  void open_gate(int gate) const {
    const std::string mark = mark_of(gate);
    ASSERT_FALSE(mark.empty()) << "no rank is at gate " << gate;
    std::ofstream(mark + ".go") << "\n";
  }

  void wait_for(const std::string& event, std::size_t times = 1) const {
    ASSERT_TRUE(comes_true([&] { return events(event).size() >= times; })) << event;
  }

  void expect_all_finished() {
    while (!hosts_.empty()) expect_finished(hosts_.rbegin()->first);
  }

  // Until so many processes can join the generation that the others have begun without them.
  void wait_until_ready_to_join(std::size_t processes) const {
    ASSERT_TRUE(comes_true([&] {
      std::size_t ready = 0;
      bool is_after_the_loss = false;
      for (const Json& line : journal_of(folder_)) {
        const std::string event = line.at("event");
        if (event == "host_lost") is_after_the_loss = true;
        if (!is_after_the_loss) continue;
        if (event == "ready") ++ready;
        if (event == "host_returned") ready += times_in(line.at("reason"), "is ready to join again");
      }
      return ready >= processes;
    }));
  }

  static std::size_t times_in(const std::string& text, const std::string& words) {
    std::size_t times = 0;
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++times;
    return times;
  }

  // Each step is saved. One that was lost would be saved again, by the generation that computes it again.
  void expect_that_no_step_was_lost() const {
    std::vector<std::int64_t> steps;
    for (const Json& saved : events("savepoint")) steps.push_back(saved.at("details").at("step"));
    EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()), steps.end())
        << ::testing::PrintToString(steps);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back(), 27);
    EXPECT_THAT(events("resumed"), ::testing::IsEmpty());
    EXPECT_EQ(events("fit_finished").size(), 1U);
  }

  int replicas_ = 1;  // of each host
  std::vector<std::string> options_;
};

}  // namespace holdfast
