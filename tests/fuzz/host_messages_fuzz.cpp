// What head and agents read of each other once they are introduced. A message that lacks something throws an exception
// of the JSON library, as hosts/agent_connection.cpp expects it.

#include <nlohmann/json.hpp>

#include "agents/host_messages.h"
#include "fuzz_input.h"
#include "hosts/frames.h"

using namespace holdfast;
using namespace holdfast::recovery;

// What was read can be written, and is read again.
static void read_message(const nlohmann::json& message) {
  try {
    const auto kind = message.at("kind").get<std::string>();
    if (kind == kStartProcess) parse_start(start_message(parse_start(message)));
    if (kind == kOpenGeneration) parse_generation(generation_message(parse_generation(message)));
    if (kind == kExited) parse_end(end_message(parse_end(message)));
    if (kind == kResume) folder_of_head_from(to_json(folder_of_head_from(message.at("folder"))));
    if (kind == kPresent) parse_presence(presence_message(parse_presence(message)));
    if (kind == kNotStarted) static_cast<void>(code_in(message));
    if (kind == kStatuses) {
      for (const nlohmann::json& status : message.at("statuses")) parse_status(status_message(parse_status(status)));
    }
  } catch (const nlohmann::json::exception&) {
  }
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::succeeds([&] {
    FrameReader reader;
    reader.take(std::as_bytes(std::span(data, size)));
    while (const auto message = reader.next()) {
      fuzz::succeeds([&] { read_message(*message); });
    }
  });
  return 0;
}
