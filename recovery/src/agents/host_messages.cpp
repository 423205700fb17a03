// Both ends are the same version (hosts/introduction.h), so an enumerator has the same number in both. But a peer may
// err, and an unknown number would be the index of a table here, so each is checked. A member of a message that is
// missing or of another type closes the connection (hosts/agent_connection.cpp). Texts that a process wrote into shared
// memory may be any bytes, and JSON is UTF-8. docs/decisions/agent-connections.md

#include "agents/host_messages.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast::recovery {
namespace {

// An enumerator, as its number.
int choice_in(const nlohmann::json& message, const char* key, int last) {
  // Enumerators begin with 0 and have no gaps, so the last one is the only limit.
  const int number = whole_number_in<int>(message, key);
  if (number >= 0 && number <= last) return number;
  throw Error(ErrorCode::input_output, fmt::format("a host sent a \"{}\" that there is not: {}", key, number));
}

nlohmann::json to_json(const Crash& crash) {
  nlohmann::json frames = nlohmann::json::array();
  for (const CrashFrame& frame : crash.frames) {
    frames.push_back(
        {{"address", frame.address}, {"file_offset", frame.file_offset}, {"path", shown_text(frame.path)}});
  }
  return {{"signal", crash.signal}, {"frames", frames}};
}

Crash parse_crash(const nlohmann::json& message) {
  Crash crash{.signal = whole_number_in<int>(message, "signal")};
  // shown_text() made the paths UTF-8 when they were sent, so they may differ from the bytes in the process.
  for (const nlohmann::json& frame : message.at("frames")) {
    crash.frames.push_back({.address = whole_number_in<std::uint64_t>(frame, "address"),
                            .file_offset = whole_number_in<std::uint64_t>(frame, "file_offset"),
                            .path = frame.at("path").get<std::string>()});
  }
  return crash;
}

std::chrono::nanoseconds nanoseconds_in(const nlohmann::json& message, const char* key) {
  return std::chrono::nanoseconds(whole_number_in<std::int64_t>(message, key));
}

// The arrays of a generation are read by index, and each host is found among its hosts.
void check_hosts(const HostAgent::Generation& generation) {
  // A generation within one host names no hosts.
  if (generation.hosts.empty() && generation.peers.empty()) return;
  const auto has = [&](int host) {
    return std::find(generation.hosts.begin(), generation.hosts.end(), host) != generation.hosts.end();
  };
  // Ranks of a host follow one another, so each host is left once. One that appears again later makes this list too
  // long.
  std::vector<int> order = generation.hosts;
  order.erase(std::unique(order.begin(), order.end()), order.end());
  // A peer that is named twice, or that is this host, makes the set smaller than the list of peers.
  std::set<int> named{generation.host};
  for (const LinkPeer& peer : generation.peers) named.insert(peer.host);
  const bool fits = generation.hosts.size() == generation.members.size() && has(generation.host) &&
                    named.size() == generation.peers.size() + 1 && order.size() == named.size() &&
                    std::set<int>(order.begin(), order.end()) == named;
  if (fits) return;
  throw Error(ErrorCode::input_output,
              fmt::format("the head opened generation {} with hosts that do not fit together", generation.number));
}

}  // namespace

nlohmann::json start_message(const ReplicaStarter::Program& program) {
  return {{"kind", kStartProcess},
          {"member", program.member},
          {"executable", program.executable},
          {"arguments", program.arguments},
          {"variables", program.variables},
          {"ignores_failing_writes", program.ignores_failing_writes}};
}

ReplicaStarter::Program parse_start(const nlohmann::json& message) {
  return {.executable = message.at("executable").get<std::string>(),
          .arguments = message.at("arguments").get<std::vector<std::string>>(),
          .variables = message.at("variables").get<std::vector<std::string>>(),
          .member = whole_number_in<int>(message, "member"),
          .ignores_failing_writes = message.at("ignores_failing_writes").get<bool>()};
}

// Made for each host, since `host` and `peers` differ.
nlohmann::json generation_message(const HostAgent::Generation& generation) {
  nlohmann::json peers = nlohmann::json::array();
  for (const LinkPeer& peer : generation.peers) {
    peers.push_back(
        {{"host", peer.host}, {"address", peer.address.host}, {"port", peer.address.port}, {"key", to_text(peer.key)}});
  }
  return {{"kind", kOpenGeneration},
          {"number", generation.number},
          {"members", generation.members},
          {"shards", generation.shards},
          {"may_use_snapshots", generation.may_use_snapshots},
          {"hosts", generation.hosts},
          {"host", generation.host},
          {"peers", peers}};
}

HostAgent::Generation parse_generation(const nlohmann::json& message) {
  HostAgent::Generation generation{.number = whole_number_in<int>(message, "number"),
                                   .members = whole_numbers_in<int>(message, "members"),
                                   .shards = whole_numbers_in<int>(message, "shards"),
                                   .may_use_snapshots = message.at("may_use_snapshots").get<bool>(),
                                   .hosts = whole_numbers_in<int>(message, "hosts"),
                                   .host = whole_number_in<int>(message, "host")};
  for (const nlohmann::json& peer : message.at("peers")) {
    generation.peers.push_back({.host = whole_number_in<int>(peer, "host"),
                                .address = {.host = peer.at("address").get<std::string>(),
                                            .port = whole_number_in<std::uint16_t>(peer, "port")},
                                .key = link_key_from(peer.at("key").get<std::string>())});
  }
  check_hosts(generation);
  return generation;
}

// A process that ended in order, or had no time to leave anything, has no crash.
nlohmann::json end_message(const ProcessEnd& end) {
  nlohmann::json message{
      {"kind", kExited}, {"member", end.member}, {"exit_code", end.status.code}, {"signal", end.status.signal}};
  if (end.crash) message["crash"] = to_json(*end.crash);
  return message;
}

ProcessEnd parse_end(const nlohmann::json& message) {
  ProcessEnd end{.member = whole_number_in<int>(message, "member"),
                 .status = {.code = whole_number_in<int>(message, "exit_code"),
                            .signal = whole_number_in<int>(message, "signal")}};
  if (message.contains("crash")) end.crash = parse_crash(message.at("crash"));
  return end;
}

nlohmann::json presence_message(const Presence& presence) {
  nlohmann::json ended = nlohmann::json::array();
  for (const ProcessEnd& end : presence.ended) ended.push_back(end_message(end));
  nlohmann::json message{
      {"kind", kPresent}, {"members", presence.members}, {"steps", presence.steps}, {"ended", ended}};
  if (presence.offered) message["offered"] = {{"run", presence.offered->run}, {"choices", presence.offered->choices}};
  return message;
}

// The supervisor takes it as one event, and would count a process twice that is named twice.
Presence parse_presence(const nlohmann::json& message) {
  Presence presence{.members = whole_numbers_in<int>(message, "members"),
                    .steps = whole_numbers_in<std::int64_t>(message, "steps")};
  if (presence.members.size() != presence.steps.size()) {
    throw Error(ErrorCode::input_output, fmt::format("a host named {} processes and the states of {}",
                                                     presence.members.size(), presence.steps.size()));
  }
  if (std::set<int>(presence.members.begin(), presence.members.end()).size() != presence.members.size()) {
    throw Error(ErrorCode::input_output, "a host named a process twice");
  }
  for (const nlohmann::json& end : message.at("ended")) presence.ended.push_back(parse_end(end));
  if (message.contains("offered")) {
    const nlohmann::json& offered = message.at("offered");
    presence.offered = {.run = offered.at("run").get<std::string>(),
                        .choices = offered.at("choices").get<std::string>()};
  }
  return presence;
}

nlohmann::json status_message(const ProcessStatus& status) {
  const Heartbeat& heartbeat = status.heartbeat;
  return {{"member", heartbeat.member},
          {"progress", heartbeat.progress},
          {"phase", static_cast<int>(heartbeat.phase)},
          {"step", heartbeat.step},
          {"steps", heartbeat.steps},
          // Times are in nanoseconds: nanoseconds_in() reads them so.
          {"step_time", heartbeat.step_time.count()},
          {"arrivals", heartbeat.arrivals},
          {"background_number", heartbeat.background.number},
          {"background_bytes", heartbeat.background.bytes},
          {"is_background_callback", heartbeat.background.is_callback},
          {"join_state", static_cast<int>(status.join_state)},
          {"samples", status.samples},
          {"computing", status.computing.count()},
          {"waiting", status.waiting.count()},
          {"in_background", shown_text(status.in_background)},
          {"is_stopped", status.is_stopped},
          {"cpu_demand", status.cpu_demand.count()}};
}

// The hang detector reads it as it reads the life page of a process of its own host.
ProcessStatus parse_status(const nlohmann::json& message) {
  const int join_state = choice_in(message, "join_state", static_cast<int>(JoinState::in_steps));
  return {.heartbeat = {.member = whole_number_in<int>(message, "member"),
                        .progress = whole_number_in<std::uint64_t>(message, "progress"),
                        .phase = static_cast<Phase>(choice_in(message, "phase", kPhaseCount - 1)),
                        .step = whole_number_in<std::int64_t>(message, "step"),
                        .steps = whole_number_in<std::uint64_t>(message, "steps"),
                        .step_time = nanoseconds_in(message, "step_time"),
                        .arrivals = whole_number_in<std::uint64_t>(message, "arrivals"),
                        .background = {.number = whole_number_in<std::uint64_t>(message, "background_number"),
                                       .bytes = whole_number_in<std::uint64_t>(message, "background_bytes"),
                                       .is_callback = message.at("is_background_callback").get<bool>()}},
          .join_state = static_cast<JoinState>(join_state),
          .samples = whole_number_in<std::uint64_t>(message, "samples"),
          .computing = nanoseconds_in(message, "computing"),
          .waiting = nanoseconds_in(message, "waiting"),
          .in_background = message.at("in_background").get<std::string>(),
          .is_stopped = message.at("is_stopped").get<bool>(),
          .cpu_demand = nanoseconds_in(message, "cpu_demand")};
}

// `unsupported` is the last code (base/error.h).
ErrorCode code_in(const nlohmann::json& message) {
  return static_cast<ErrorCode>(choice_in(message, "code", static_cast<int>(ErrorCode::unsupported)));
}

}  // namespace holdfast::recovery
