#include "messages.h"

#include "journal.h"

namespace holdfast::recovery {

nlohmann::json welcome_message(const Welcome& welcome) {
  nlohmann::json restarts = nlohmann::json::array();
  for (const Restart& restart : welcome.restarts) restarts.push_back(to_json(restart));
  return {{"kind", kWelcome},
          {"rank", welcome.rank},
          {"size", welcome.size},
          {"generation", welcome.generation},
          {"watchdog_pid", welcome.watchdog_pid},
          {"run_directory", welcome.run_directory},
          {"config", welcome.config},
          {"restarts", restarts},
          {"faults", welcome.faults}};
}

Welcome parse_welcome(const nlohmann::json& message) {
  Welcome welcome{.rank = message.at("rank").get<int>(),
                  .size = message.at("size").get<int>(),
                  .generation = message.at("generation").get<int>(),
                  .watchdog_pid = message.at("watchdog_pid").get<int>(),
                  .run_directory = message.at("run_directory").get<std::string>(),
                  .config = message.at("config").get<std::string>(),
                  .restarts = {},
                  .faults = message.at("faults").get<std::vector<std::string>>()};
  for (const nlohmann::json& restart : message.at("restarts")) {
    welcome.restarts.push_back(restart_from_json(restart));
  }
  return welcome;
}

nlohmann::json arena_request(int number, std::size_t bytes) {
  return {{"kind", kArenaRequest}, {"number", number}, {"bytes", bytes}};
}

nlohmann::json arena_reply(int number, std::size_t bytes) {
  return {{"kind", kArena}, {"number", number}, {"bytes", bytes}};
}

nlohmann::json arena_refusal(int number, ErrorCode code, const std::string& sentence) {
  return {{"kind", kArena}, {"number", number}, {"code", static_cast<int>(code)}, {"error", sentence}};
}

void check_arena_reply(const nlohmann::json& message) {
  if (!message.contains("error")) return;
  // Both ends are the same build of the library, so that an enumerator's number is the same to both.
  throw Error(static_cast<ErrorCode>(message.at("code").get<int>()), message.at("error").get<std::string>());
}

}  // namespace holdfast::recovery
