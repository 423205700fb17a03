// The supervisor in many whole runs, in which everything goes wrong at random moments (support/simulated_world.h).
// HOLDFAST_SIMULATION_SEEDS is the number of runs. The first seed is HOLDFAST_SIMULATION_FIRST_SEED, or 0. With
// HOLDFAST_SIMULATION_SEED, only this run is made, and it is printed in full; with HOLDFAST_SIMULATION_HOSTS_SEED, one
// of several hosts.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "unit/recovery/support/simulation.h"

namespace holdfast::recovery {
namespace {

constexpr std::uint64_t kSeeds = 20'000;
constexpr std::size_t kLinesOfAFailure = 40;
constexpr const char* kSeedVariable = "HOLDFAST_SIMULATION_SEED";
constexpr const char* kHostsSeedVariable = "HOLDFAST_SIMULATION_HOSTS_SEED";

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// Repeats the run, and prints what happens.
std::string story_of(std::uint64_t seed, std::size_t most_lines, bool has_hosts = false) {
  std::vector<std::string> log;
  static_cast<void>(has_hosts ? simulate_hosts(seed, &log) : simulate(seed, &log));
  const std::size_t first = log.size() > most_lines ? log.size() - most_lines : 0;
  std::string story = has_hosts ? kHostsSeedVariable : kSeedVariable;
  story += "=" + std::to_string(seed) + "\n";
  for (std::size_t i = first; i < log.size(); ++i) story += log[i] + "\n";
  return story;
}

TEST(SupervisorSimulation, KeepsItsPromisesWhateverHappens) {
  const std::uint64_t seeds = number_from_environment("HOLDFAST_SIMULATION_SEEDS", kSeeds);
  const std::uint64_t first = number_from_environment("HOLDFAST_SIMULATION_FIRST_SEED", 0);
  std::map<Ending, std::uint64_t> endings;
  std::uint64_t with_survivors = 0;
  std::uint64_t with_steps_computed_again = 0;
  std::uint64_t regrouped = 0;
  std::uint64_t tried_a_place = 0;
  std::uint64_t with_place_back = 0;
  std::uint64_t assigned_anew = 0;
  std::uint64_t replaced_slow = 0;
  std::uint64_t lost_devices = 0;
  std::uint64_t decisions = 0;

  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const SimulatedRun run = simulate(seed);
    ASSERT_EQ(run.violation, "") << story_of(seed, kLinesOfAFailure);
    ++endings[run.ending];
    with_survivors += run.went_on_with_survivors ? 1 : 0;
    with_steps_computed_again += run.computed_steps_again ? 1 : 0;
    regrouped += run.regrouped ? 1 : 0;
    tried_a_place += run.tried_a_place ? 1 : 0;
    with_place_back += run.has_place_back ? 1 : 0;
    assigned_anew += run.was_assigned_anew ? 1 : 0;
    replaced_slow += static_cast<std::uint64_t>(run.replaced_slow);
    lost_devices += static_cast<std::uint64_t>(run.lost_devices);
    decisions += static_cast<std::uint64_t>(run.decisions);
  }

  // The test is worth nothing if nothing goes wrong, so each kind of trouble must occur.
  EXPECT_GT(endings[Ending::finished], seeds / 2);
  EXPECT_GT(with_survivors, seeds / 4);
  EXPECT_GT(with_steps_computed_again, seeds / 100);
  EXPECT_GT(regrouped, seeds / 100);
  EXPECT_GT(tried_a_place, seeds / 100);
  EXPECT_GT(with_place_back, seeds / 200);
  EXPECT_GT(assigned_anew, seeds / 100);
  EXPECT_GT(replaced_slow, seeds / 200);
  EXPECT_GT(lost_devices, seeds / 100);
  for (const Ending ending : {Ending::unrecoverable, Ending::gave_up_on_budget, Ending::gave_up_on_a_step,
                              Ending::gave_up_on_a_process, Ending::stopped}) {
    EXPECT_GT(endings[ending], seeds / 2000) << static_cast<int>(ending);
  }
  RecordProperty("decisions", std::to_string(decisions));
  for (const auto& [ending, number] : endings)
    RecordProperty("ending_" + std::to_string(static_cast<int>(ending)), std::to_string(number));
  RecordProperty("with_survivors", std::to_string(with_survivors));
  RecordProperty("with_steps_computed_again", std::to_string(with_steps_computed_again));
  RecordProperty("regrouped", std::to_string(regrouped));
  RecordProperty("tried_a_place", std::to_string(tried_a_place));
  RecordProperty("with_place_back", std::to_string(with_place_back));
  RecordProperty("dealt_anew", std::to_string(assigned_anew));
  RecordProperty("replaced_slow", std::to_string(replaced_slow));
  RecordProperty("lost_devices", std::to_string(lost_devices));
}

// Promises of a run of several hosts, besides those above: a generation has no member on a lost host, nothing on a lost
// host trains or writes after its fence has run out, and the run ends once the network is whole again.
TEST(SupervisorSimulation, KeepsItsPromisesWhateverHappensToHosts) {
  const std::uint64_t seeds = number_from_environment("HOLDFAST_SIMULATION_SEEDS", kSeeds);
  const std::uint64_t first = number_from_environment("HOLDFAST_SIMULATION_FIRST_SEED", 0);
  std::map<Ending, std::uint64_t> endings;
  std::uint64_t lost_hosts = 0;
  std::uint64_t cuts = 0;
  std::uint64_t agent_deaths = 0;
  std::uint64_t with_returned = 0;
  std::uint64_t partings = 0;
  std::uint64_t parted = 0;

  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const SimulatedRun run = simulate_hosts(seed);
    ASSERT_EQ(run.violation, "") << story_of(seed, kLinesOfAFailure, true);
    ++endings[run.ending];
    lost_hosts += static_cast<std::uint64_t>(run.lost_hosts);
    cuts += static_cast<std::uint64_t>(run.cuts);
    agent_deaths += static_cast<std::uint64_t>(run.agent_deaths);
    with_returned += run.returned > 0 ? 1 : 0;
    partings += static_cast<std::uint64_t>(run.partings);
    parted += static_cast<std::uint64_t>(run.parted);
  }

  EXPECT_GT(endings[Ending::finished], seeds / 2);
  EXPECT_GT(endings[Ending::stopped], seeds / 2000);
  EXPECT_GT(lost_hosts, seeds / 5);
  EXPECT_GT(cuts, seeds / 2);
  EXPECT_GT(agent_deaths, seeds / 10);
  EXPECT_GT(with_returned, seeds / 50);
  EXPECT_GT(partings, seeds / 5);
  EXPECT_GT(parted, seeds / 100);
  RecordProperty("partings", std::to_string(partings));
  RecordProperty("parted", std::to_string(parted));
  RecordProperty("lost_hosts", std::to_string(lost_hosts));
  RecordProperty("cuts", std::to_string(cuts));
  RecordProperty("agent_deaths", std::to_string(agent_deaths));
  RecordProperty("with_returned", std::to_string(with_returned));
}

// Each of these runs broke a promise once.
TEST(SupervisorSimulation, KeepsItsPromisesWhereItOnceBrokeThem) {
  // A process hung, its agent ordered its end, and then it hung in a way in which a kill does nothing for seconds.
  EXPECT_EQ(simulate_hosts(23009).violation, "") << story_of(23009, kLinesOfAFailure, true);
  // A process on another host could not be killed for a while, and no later order to that host arrived before its end.
  EXPECT_EQ(simulate_hosts(260887).violation, "") << story_of(260887, kLinesOfAFailure, true);
  // A lost host came back with the only state, and the next generation took spares without one.
  EXPECT_EQ(simulate_hosts(285194).violation, "") << story_of(285194, kLinesOfAFailure, true);
  // A stopped process went on after its agent had ended the generation, and then took the order to join it.
  EXPECT_EQ(simulate_hosts(314812).violation, "") << story_of(314812, kLinesOfAFailure, true);
  // A process counted as ready that had reported its failure before.
  EXPECT_EQ(simulate_hosts(582264).violation, "") << story_of(582264, kLinesOfAFailure, true);
}

TEST(SupervisorSimulation, GivesTheSameRunForTheSameSeed) {
  EXPECT_EQ(story_of(7, 1000), story_of(7, 1000));
  EXPECT_EQ(story_of(7, 1000, true), story_of(7, 1000, true));
}

TEST(SupervisorSimulation, PrintsTheRequestedRun) {
  const char* text = std::getenv(kSeedVariable);
  const char* of_hosts = std::getenv(kHostsSeedVariable);
  if (text != nullptr) EXPECT_EQ(simulate(std::stoull(text)).violation, "") << story_of(std::stoull(text), 100'000);
  if (of_hosts == nullptr) return;
  EXPECT_EQ(simulate_hosts(std::stoull(of_hosts)).violation, "") << story_of(std::stoull(of_hosts), 100'000, true);
}

}  // namespace
}  // namespace holdfast::recovery
