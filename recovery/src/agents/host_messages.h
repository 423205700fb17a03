#pragma once

// The messages between the head and the agent of another host, once they are introduced: JSON objects with a "kind".
// Beats are sent besides (hosts/agent_connection.h).
//
// Head to agent:
//   resume {members, mark}                  the first: the processes that the head knows there; all others are ended.
//                                           mark: what the head has left in the run directory
//   start {member, executable, arguments, variables, ignores_failing_writes}
//   open_generation {number, members, shards, may_use_snapshots, hosts, host, peers}
//   cancel_generation
//   tell {member, message}                  a message for the process, as in channel/messages.h
//   ask_to_leave {member, signal}
//   kill {member}
//   drop {member}                           the head has forgotten the process, which is killed
//   over {exit_code, sentence}              the run has ended
//
// Agent to head:
//   present {members, steps, ended}         answers `resume`: processes in no generation, with the steps of their
//                                           states; and those that have ended, with how they did
//   started {member, pid, at}
//   not_started {member, code, what}
//   said {member, message}                  a message of the process, but for those that ask for memory
//   bad_message {member, what}
//   failed {member, what, is_unrecoverable}
//   died {member}
//   swept {member, ended, is_any_left}
//   exited {member, exit_code, signal, crash}
//   leaving {signal}                        this host was asked to leave the run
//   unreached {generation, peer, what}      it has no connection with host `peer` for this generation
//   statuses {statuses}                         what the agent saw of each process; with each beat

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agents/folder_of_run.h"
#include "holdfast/base/error.h"
#include "hosts/host_agent.h"
#include "process/replica_process.h"

namespace holdfast::recovery {

inline constexpr const char* kResume = "resume";
inline constexpr const char* kStartProcess = "start";
inline constexpr const char* kOpenGeneration = "open_generation";
inline constexpr const char* kCancelGeneration = "cancel_generation";
inline constexpr const char* kTell = "tell";
inline constexpr const char* kAskToLeave = "ask_to_leave";
inline constexpr const char* kKill = "kill";
inline constexpr const char* kDrop = "drop";
inline constexpr const char* kOver = "over";

inline constexpr const char* kPresent = "present";
inline constexpr const char* kStarted = "started";
inline constexpr const char* kNotStarted = "not_started";
inline constexpr const char* kSaid = "said";
inline constexpr const char* kBadMessage = "bad_message";
inline constexpr const char* kFailed = "failed";
inline constexpr const char* kDied = "died";
inline constexpr const char* kSwept = "swept";
inline constexpr const char* kExited = "exited";
inline constexpr const char* kLeaving = "leaving";
inline constexpr const char* kUnreached = "unreached";
inline constexpr const char* kStatuses = "statuses";

// The whole number of a message under `key`. Throws Error{input_output} for anything else, and for a number that a Type
// cannot be: to convert it would be undefined.
template <class Type>
Type whole_number_in(const nlohmann::json& message, const char* key) {
  const nlohmann::json& value = message.at(key);
  if (value.is_number_unsigned() && std::in_range<Type>(value.get<std::uint64_t>())) return value.get<Type>();
  if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<Type>(value.get<std::int64_t>())) {
    return value.get<Type>();
  }
  throw Error(ErrorCode::input_output, fmt::format("a host sent a \"{}\" that cannot be: {}", key, value.dump()));
}

// The same of a list.
template <class Type>
std::vector<Type> whole_numbers_in(const nlohmann::json& message, const char* key) {
  const nlohmann::json& list = message.at(key);
  if (!list.is_array()) {
    throw Error(ErrorCode::input_output, fmt::format("a host sent no list of \"{}\": {}", key, list.dump()));
  }
  std::vector<Type> numbers;
  for (const nlohmann::json& value : list) numbers.push_back(whole_number_in<Type>({{key, value}}, key));
  return numbers;
}

nlohmann::json start_message(const ReplicaStarter::Program& program);
ReplicaStarter::Program parse_start(const nlohmann::json& message);

nlohmann::json generation_message(const HostAgent::Generation& generation);
HostAgent::Generation parse_generation(const nlohmann::json& message);

// How a process ended, and what it left when it crashed.
struct ProcessEnd {
  int member = 0;
  ExitStatus status{};
  std::optional<Crash> crash{};
};

nlohmann::json end_message(const ProcessEnd& end);
ProcessEnd parse_end(const nlohmann::json& message);

// The answer of an agent that has dialed.
struct Presence {
  std::vector<int> members{};
  std::vector<std::int64_t> steps{};  // of their states, in the same order; -1: that is not whole
  std::vector<ProcessEnd> ended{};
  std::optional<OfferedRun> offered{};  // of a host with a run directory of its own
};

nlohmann::json presence_message(const Presence& presence);
// Throws Error{input_output} for another number of steps than of members, and for a member that is named twice.
Presence parse_presence(const nlohmann::json& message);

// What an agent saw of a process when it looked.
struct ProcessStatus {
  Heartbeat heartbeat{};  // also names the member
  JoinState join_state = JoinState::newcomer;
  std::uint64_t samples = 0;
  std::chrono::nanoseconds computing{};
  std::chrono::nanoseconds waiting{};  // for its peers
  std::string in_background{};
  bool is_stopped = false;
  std::chrono::nanoseconds cpu_demand{};
};

nlohmann::json status_message(const ProcessStatus& status);
// Throws Error{input_output} for a phase or a state that does not exist.
ProcessStatus parse_status(const nlohmann::json& message);

// The code that an error of the other host has, under "code". Throws Error{input_output} for an unknown number.
ErrorCode code_in(const nlohmann::json& message);

}  // namespace holdfast::recovery
