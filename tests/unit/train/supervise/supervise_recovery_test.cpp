// No option may be lost on its way from the user to the watchdog.

#include "train/supervise/supervise_recovery.h"

#include <gtest/gtest.h>

#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

// All members, and they fail to compile when there is one more: add it here, in SuperviseOptions, in the options of the
// first test, and in recovery_options_of().
auto members_of(const RecoveryOptions& options) {
  const auto& [spares, when_lost, recover_from, when_slow, max_restarts, restart_window, place_rest, start_when_gone,
               hang_after, callback_timeout, start_timeout, stop_grace, faults, log_level] = options;
  return std::tie(spares, when_lost, recover_from, when_slow, max_restarts, restart_window, place_rest, start_when_gone,
                  hang_after, callback_timeout, start_timeout, stop_grace, faults, log_level);
}

// The places of members that have their default.
template <std::size_t... kPlaces>
std::vector<std::size_t> defaults_among(const RecoveryOptions& options, std::index_sequence<kPlaces...>) {
  const RecoveryOptions defaults;
  std::vector<std::size_t> places;
  const auto note = [&](std::size_t place, bool is_default) {
    if (is_default) places.push_back(place);
  };
  (note(kPlaces, std::get<kPlaces>(members_of(options)) == std::get<kPlaces>(members_of(defaults))), ...);
  return places;
}

TEST(SuperviseRecovery, TakesEachMemberOfTheUsersOptions) {
  const SuperviseOptions options{.spares = 3,
                                 .when_lost = WhenLost::wait,
                                 .recover_from = RecoverFrom::savepoint,
                                 .when_slow = WhenSlow::deal,
                                 .max_restarts = 7,
                                 .restart_window = milliseconds(11),
                                 .place_rest = milliseconds(13),
                                 .start_when_gone = false,
                                 .hang_after = milliseconds(17),
                                 .callback_timeout = milliseconds(19),
                                 .start_timeout = milliseconds(23),
                                 .stop_grace = milliseconds(29),
                                 .log_level = LogLevel::error,
                                 .faults = {"rank=1,step=2,fault=kill"}};

  const RecoveryOptions recovery = recovery_options_of(options);

  const RecoveryOptions expected{.spares = 3,
                                 .when_lost = WhenLost::wait,
                                 .recover_from = RecoverFrom::savepoint,
                                 .when_slow = WhenSlow::deal,
                                 .max_restarts = 7,
                                 .restart_window = milliseconds(11),
                                 .place_rest = milliseconds(13),
                                 .start_when_gone = false,
                                 .hang_after = milliseconds(17),
                                 .callback_timeout = milliseconds(19),
                                 .start_timeout = milliseconds(23),
                                 .stop_grace = milliseconds(29),
                                 .faults = {"rank=1,step=2,fault=kill"},
                                 .log_level = LogLevel::error};
  EXPECT_EQ(members_of(recovery), members_of(expected));
  constexpr auto kMembers = std::tuple_size_v<decltype(members_of(recovery))>;
  EXPECT_EQ(defaults_among(recovery, std::make_index_sequence<kMembers>()), std::vector<std::size_t>{});
}

TEST(SuperviseRecovery, HasTheDefaultsOfTheWatchdog) {
  const RecoveryOptions recovery = recovery_options_of({});

  EXPECT_EQ(members_of(recovery), members_of(RecoveryOptions{}));
}

}  // namespace
}  // namespace holdfast
