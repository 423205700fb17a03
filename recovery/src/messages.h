#pragma once

// What watchdog and workers say to each other over their channel: JSON objects with a "kind".
//
//   worker to watchdog:  registered | failure {what, is_unrecoverable} | finished | event {name, details} |
//                        arena_request {number, bytes}
//   watchdog to worker:  welcome {...} | stop | arena {number, bytes, with descriptors by rank} | arena {number, error,
//   code}

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/recovery/worker.h"

namespace holdfast::recovery {

// "CHANNEL,LIFE,LOCK": numbers of the descriptors that a worker inherits.
inline constexpr const char* kWorkerVariable = "HOLDFAST_WORKER";

inline constexpr const char* kRegistered = "registered";
inline constexpr const char* kFailure = "failure";
inline constexpr const char* kFinished = "finished";
inline constexpr const char* kEvent = "event";
inline constexpr const char* kArenaRequest = "arena_request";
inline constexpr const char* kWelcome = "welcome";
inline constexpr const char* kStop = "stop";
inline constexpr const char* kArena = "arena";

struct Welcome {
  int rank = 0;
  int size = 0;
  int generation = 0;
  int watchdog_pid = 0;
  std::string run_directory{};
  std::string config{};
  std::vector<Restart> restarts{};
  std::vector<std::string> faults{};
};

nlohmann::json welcome_message(const Welcome& welcome);
Welcome parse_welcome(const nlohmann::json& message);

nlohmann::json arena_request(int number, std::size_t bytes);
nlohmann::json arena_reply(int number, std::size_t bytes);
nlohmann::json arena_refusal(int number, ErrorCode code, const std::string& sentence);
// Throws the Error of a refusal.
void check_arena_reply(const nlohmann::json& message);

}  // namespace holdfast::recovery
