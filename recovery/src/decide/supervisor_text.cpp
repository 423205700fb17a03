// The names of kinds, stages and phases are data: the journal has them, and scenarios read and expect them. Earlier
// journals have actions as describe() words them; recorded_actions.cpp reads those.

#include "decide/supervisor_text.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holdfast::recovery {

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string seconds(Moment::duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

std::string name_of(const Member& member) {
  return member.rank < 0 ? fmt::format("process {}", member.id) : fmt::format("replica {}", member.rank);
}

std::string full_name_of(const Member& member) {
  if (member.rank < 0) return name_of(member);
  return fmt::format("process {} (replica {})", member.id, member.rank);
}

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", abbreviation);
}

std::string describe_exit(const Event& event) {
  if (event.signal != 0) return fmt::format("killed by signal {} ({})", event.signal, signal_name(event.signal));
  if (event.exit_code == 0) return "exited with code 0 without having finished";
  return fmt::format("exited with code {}", event.exit_code);
}

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::start:
      return "start";
    case EventKind::ready:
      return "ready";
    case EventKind::checked_in:
      return "checked_in";
    case EventKind::progressed:
      return "progressed";
    case EventKind::finished:
      return "finished";
    case EventKind::failure_reported:
      return "failure_reported";
    case EventKind::device_failed:
      return "device_failed";
    case EventKind::died:
      return "died";
    case EventKind::exited:
      return "exited";
    case EventKind::hang_detected:
      return "hang_detected";
    case EventKind::slow:
      return "slow";
    case EventKind::start_failed:
      return "start_failed";
    case EventKind::scale_requested:
      return "scale_requested";
    case EventKind::assignment_proposed:
      return "deal_proposed";
    case EventKind::directory_lost:
      return "directory_lost";
    case EventKind::place_lost:
      return "place_lost";
    case EventKind::stop_requested:
      return "stop_requested";
    case EventKind::timer:
      return "timer";
  }
  return "unknown";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::starting:
      return "starting";
    case Stage::ready:
      return "ready";
    case Stage::training:
      return "training";
    case Stage::waiting:
      return "waiting";
    case Stage::finished:
      return "finished";
    case Stage::leaving:
      return "leaving";
    case Stage::failed:
      return "failed";
  }
  return "unknown";
}

std::string_view to_string(RunPhase phase) {
  switch (phase) {
    case RunPhase::idle:
      return "idle";
    case RunPhase::gathering:
      return "gathering";
    case RunPhase::running:
      return "running";
    case RunPhase::finishing:
      return "finishing";
    case RunPhase::ending:
      return "ending";
    case RunPhase::over:
      return "over";
  }
  return "unknown";
}

std::string_view to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::start_process:
      return "start_process";
    case ActionKind::cancel_generation:
      return "cancel_generation";
    case ActionKind::kill_process:
      return "kill_process";
    case ActionKind::open_generation:
      return "open_generation";
    case ActionKind::ask_to_regroup:
      return "ask_to_regroup";
    case ActionKind::ask_to_stop:
      return "ask_to_stop";
    case ActionKind::set_timer:
      return "set_timer";
    case ActionKind::record_failure:
      return "record_failure";
    case ActionKind::finish:
      return "finish";
  }
  return "unknown";
}

std::string describe(const Action& action, Moment now) {
  const std::string_view name = to_string(action.kind);
  switch (action.kind) {
    case ActionKind::start_process:
      return fmt::format("{} {} on place {}", name, action.member, action.device_slot);
    case ActionKind::cancel_generation:
      return fmt::format("{} {}", name, action.generation);
    case ActionKind::kill_process:
      return fmt::format("{} {}", name, action.member);
    case ActionKind::open_generation: {
      const std::string opened = fmt::format("{} {} with {}", name, action.generation, fmt::join(action.members, " "));
      return action.shards.empty() ? opened : fmt::format("{} dealt {}", opened, fmt::join(action.shards, " "));
    }
    case ActionKind::ask_to_regroup:
    case ActionKind::ask_to_stop:
      return std::string(name);
    case ActionKind::set_timer:
      return fmt::format("{} in {}", name, seconds(action.moment - now));
    case ActionKind::record_failure:
      return fmt::format("{} of process {}: {}", name, action.member, action.text);
    case ActionKind::finish:
      return fmt::format("{} {}: {}", name, action.exit_code, action.text);
  }
  return "unknown";
}

}  // namespace holdfast::recovery
