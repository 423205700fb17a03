// The names of kinds, stages and phases are data: the journal has them, and scenarios read and expect them. So a name
// stays as it is when its enumerator gets a better one.

#include "decide/supervisor_text.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

namespace holdfast::recovery {
namespace {

// Each list has the order of its enumerators.
constexpr std::array kEventNames{
    "start",           "ready",         "checked_in",    "progressed",     "finished",       "failure_reported",
    "device_failed",   "died",          "exited",        "hang_detected",  "slow",           "start_failed",
    "scale_requested", "deal_proposed", "place_lost",    "stop_requested", "directory_lost", "host_joined",
    "host_lost",       "fence_passed",  "host_returned", "host_leaving",   "hosts_cut",      "timer"};
constexpr std::array kStageNames{"starting", "ready",   "training", "waiting",
                                 "finished", "leaving", "failed",   "unreachable"};
constexpr std::array kRunPhaseNames{"idle", "gathering", "running", "finishing", "ending", "over"};
constexpr std::array kHostStageNames{"awaited", "there", "lost", "leaving"};
constexpr std::array kActionNames{"start_process",   "cancel_generation", "kill_process",
                                  "open_generation", "ask_to_regroup",    "ask_to_stop",
                                  "set_timer",       "record_failure",    "finish"};

// A missing name is noticed here, and not when the first event of its kind comes.
static_assert(kEventNames.size() == static_cast<std::size_t>(EventKind::timer) + 1);
static_assert(kStageNames.size() == static_cast<std::size_t>(Stage::unreachable) + 1);
static_assert(kRunPhaseNames.size() == static_cast<std::size_t>(RunPhase::over) + 1);
static_assert(kHostStageNames.size() == static_cast<std::size_t>(Host::Stage::leaving) + 1);
static_assert(kActionNames.size() == static_cast<std::size_t>(ActionKind::finish) + 1);

}  // namespace

// Reasons are read by people, so one replica is not called 1 replicas.
std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string seconds(Moment::duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

// Users know replicas by their ranks. A process that was never in a generation has only its number.
std::string name_of(const Member& member) {
  return member.rank < 0 ? fmt::format("process {}", member.id) : fmt::format("replica {}", member.rank);
}

std::string full_name_of(const Member& member) {
  if (member.rank < 0) return name_of(member);
  return fmt::format("process {} (replica {})", member.id, member.rank);
}

std::string signal_name(int signal) {
  // Not strsignal(), whose words depend on the locale: journals of all hosts have one language.
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", abbreviation);
}

std::string describe_exit(const Event& event) {
  if (event.signal != 0) return fmt::format("killed by signal {} ({})", event.signal, signal_name(event.signal));
  // A worker reports that it has finished before it exits, so code 0 alone shows no success.
  if (event.exit_code == 0) return "exited with code 0 without having finished";
  return fmt::format("exited with code {}", event.exit_code);
}

std::string sentence_of(const LastFailure& failure) {
  return failure.who.empty() ? failure.cause : fmt::format("{}: {}", failure.who, failure.cause);
}

std::string sentence_of(const RunEnding& ending) {
  if (!ending.failure) return ending.reason;
  const std::string failure = sentence_of(*ending.failure);
  return ending.reason.empty() ? failure : with_last_failure(ending.reason, failure);
}

std::string with_last_failure(const std::string& reason, const std::string& failure) {
  return fmt::format("{}; the last failure was {}", reason, failure);
}

std::string_view to_string(EventKind kind) {
  return kEventNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(Stage stage) {
  return kStageNames.at(static_cast<std::size_t>(stage));
}

std::string_view to_string(RunPhase phase) {
  return kRunPhaseNames.at(static_cast<std::size_t>(phase));
}

std::string_view to_string(Host::Stage stage) {
  return kHostStageNames.at(static_cast<std::size_t>(stage));
}

std::string_view to_string(ActionKind kind) {
  return kActionNames.at(static_cast<std::size_t>(kind));
}

}  // namespace holdfast::recovery
