// Both ends are the same build of the library. A member that is missing or has the wrong type throws, and the watchdog
// takes that for a failure of the sender. docs/decisions/recovery.md

#include "channel/messages.h"

#include <string>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "journal/journal.h"

namespace holdfast::recovery {
namespace {

// Far more than any run has, and far less than an int holds.
constexpr int kMostShards = 1 << 20;

}  // namespace

nlohmann::json hello_message(const Hello& hello) {
  nlohmann::json message{{"kind", kHello},
                         {"intended_rank", hello.intended_rank},
                         {"replicas", hello.replicas},
                         {"watchdog_pid", hello.watchdog_pid},
                         {"patience_ms", hello.patience.count()},
                         {"run_directory", hello.run_directory},
                         {"config", hello.config},
                         {"faults", hello.faults}};
  // Without it, the program keeps the level that it has set itself.
  if (hello.log_level) message["log_level"] = name(*hello.log_level);
  // Left out where they have the defaults that parse_hello() gives them.
  if (hello.has_own_folder) message["has_own_folder"] = true;
  if (hello.cores != 0) message["cores"] = hello.cores;
  return message;
}

Hello parse_hello(const nlohmann::json& message) {
  return {.intended_rank = message.at("intended_rank").get<int>(),
          .replicas = message.at("replicas").get<int>(),
          .watchdog_pid = message.at("watchdog_pid").get<int>(),
          .patience = std::chrono::milliseconds(message.at("patience_ms").get<std::int64_t>()),
          .run_directory = message.at("run_directory").get<std::string>(),
          .config = message.at("config").get<std::string>(),
          .faults = message.at("faults").get<std::vector<std::string>>(),
          .log_level = log_level_from_name(message.value("log_level", "")),
          .has_own_folder = message.value("has_own_folder", false),
          .cores = message.value("cores", 0)};
}

void to_json(nlohmann::json& message, const Welcome& welcome) {
  message = {
      {"generation", welcome.generation}, {"rank", welcome.rank}, {"size", welcome.size}, {"shards", welcome.shards}};
  // Empty where all ranks are on one host.
  if (!welcome.host_ranks.empty()) message["host_ranks"] = welcome.host_ranks;
}

void from_json(const nlohmann::json& message, Welcome& welcome) {
  welcome = {.generation = message.at("generation").get<int>(),
             .rank = message.at("rank").get<int>(),
             .size = message.at("size").get<int>(),
             .shards = message.at("shards").get<std::vector<int>>(),
             .host_ranks = message.value("host_ranks", std::vector<int>())};
}

nlohmann::json work_message(int generation, const ReplicaWork& work) {
  return {{"kind", kWork}, {"generation", generation}, {"shards", work.shards}, {"at_once", work.at_once}};
}

ReplicaWork parse_work(const nlohmann::json& message) {
  return {.shards = message.at("shards").get<int>(), .at_once = message.at("at_once").get<int>()};
}

// The watchdog divides by these numbers, so a zero must not get through.
void check_work(const ReplicaWork& work) {
  if (work.shards >= 1 && work.shards <= kMostShards && work.at_once >= 1) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "reported that it computes {} shards, {} at once; possible are 1 to {} shards, and at least 1 at once",
          work.shards, work.at_once, kMostShards));
}

nlohmann::json arena_message(const char* kind, ArenaNumber which, std::size_t bytes) {
  return {{"kind", kind}, {"generation", which.generation}, {"number", which.number}, {"bytes", bytes}};
}

nlohmann::json arena_refusal(ArenaNumber which, ErrorCode code, const std::string& sentence) {
  return {{"kind", kArena},
          {"generation", which.generation},
          {"number", which.number},
          {"code", static_cast<int>(code)},
          {"error", sentence}};
}

ArenaNumber arena_number_of(const nlohmann::json& message) {
  return {.generation = message.at("generation").get<int>(), .number = message.at("number").get<int>()};
}

void check_arena_reply(const nlohmann::json& message) {
  if (!message.contains("error")) return;
  // Both ends are the same build of the library, so an enumerator has the same number in both.
  throw Error(static_cast<ErrorCode>(message.at("code").get<int>()), message.at("error").get<std::string>());
}

}  // namespace holdfast::recovery
