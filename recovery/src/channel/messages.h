#pragma once

// The messages between watchdog and workers: JSON objects with a "kind".
//
// Worker to watchdog:
//   joined, ready, finished
//   checked_in {generation, step}
//   failure {what, is_unrecoverable}
//   event {name, details}
//   arena_request {generation, number, bytes}
//   snapshot_request {bytes}
//   work {generation, shards, at_once}
//   savepoint_made {number, path, step}
//   savepoint_not_made {number, why}
//
// Watchdog to worker:
//   hello {...}
//   welcome {generation, rank, size, shards}, with descriptors of memory snapshots
//   regroup {generation}
//   stop
//   snapshot_memory {}, with a descriptor
//   make_savepoint {number}
//   arena {generation, number, bytes}, with descriptors by rank
//   arena {generation, number, error, code}

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/replica_work.h"

namespace holdfast::recovery {

// "CHANNEL,LIFE,LOCK", and ",FENCE" on one of several hosts: numbers of the descriptors that a worker inherits.
inline constexpr const char* kWorkerVariable = "HOLDFAST_WORKER";

inline constexpr const char* kJoined = "joined";
inline constexpr const char* kReady = "ready";
inline constexpr const char* kCheckedIn = "checked_in";
inline constexpr const char* kFailure = "failure";
inline constexpr const char* kOtherChoices = "other_choices";  // in a failure: it is caused by OtherChoices
inline constexpr const char* kFinished = "finished";
inline constexpr const char* kEvent = "event";
inline constexpr const char* kArenaRequest = "arena_request";
inline constexpr const char* kSnapshotRequest = "snapshot_request";
inline constexpr const char* kWork = "work";
inline constexpr const char* kSavepointMade = "savepoint_made";
inline constexpr const char* kSavepointNotMade = "savepoint_not_made";

inline constexpr const char* kHello = "hello";
inline constexpr const char* kWelcome = "welcome";
inline constexpr const char* kRegroup = "regroup";
inline constexpr const char* kStop = "stop";
inline constexpr const char* kArena = "arena";
inline constexpr const char* kSnapshotMemory = "snapshot_memory";
inline constexpr const char* kMakeSavepoint = "make_savepoint";

// The first message to a worker: what it was started for.
struct Hello {
  int intended_rank = 0;
  int replicas = 0;
  int watchdog_pid = 0;
  std::chrono::milliseconds patience{};
  std::string run_directory{};
  std::string config{};
  std::vector<std::string> faults{};
  std::optional<LogLevel> log_level{};
  bool has_own_folder = false;  // run_directory is that of this host alone
  int cores = 0;                // of this host; 0: those of the process that wrote `config`
};

nlohmann::json hello_message(const Hello& hello);
Hello parse_hello(const nlohmann::json& message);

// The message to each member of a new generation, besides its kind.
struct Welcome {
  int generation = 0;
  int rank = 0;
  int size = 0;
  std::vector<int> shards{};      // by rank; empty: as the program assigns them
  std::vector<int> host_ranks{};  // how many ranks each host has, in the order of ranks; empty: all are on one host
};

void to_json(nlohmann::json& message, const Welcome& welcome);
void from_json(const nlohmann::json& message, Welcome& welcome);

nlohmann::json work_message(int generation, const ReplicaWork& work);
ReplicaWork parse_work(const nlohmann::json& message);
// Throws Error{invalid_argument} for numbers that are not possible.
void check_work(const ReplicaWork& work);

// Which exchange of arenas a message is about.
struct ArenaNumber {
  int generation = 0;
  int number = 0;  // from 0 in each generation

  friend auto operator<=>(const ArenaNumber&, const ArenaNumber&) = default;
};

// `kind` is kArenaRequest or kArena.
nlohmann::json arena_message(const char* kind, ArenaNumber which, std::size_t bytes);
nlohmann::json arena_refusal(ArenaNumber which, ErrorCode code, const std::string& sentence);
ArenaNumber arena_number_of(const nlohmann::json& message);
// Throws the Error of a refusal.
void check_arena_reply(const nlohmann::json& message);

}  // namespace holdfast::recovery
