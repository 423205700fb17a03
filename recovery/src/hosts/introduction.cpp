// Everything is compared before the first process starts, and the first difference is told with what to do about it.
// Ranks of different programs would otherwise train together until their states are compared.
// docs/decisions/host-connections.md

#include "hosts/introduction.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "hosts/node_list.h"

namespace holdfast::recovery {
namespace {

constexpr const char* kIntroduction = "introduction";
// Bounds for numbers that a stranger may have sent, so that nothing is made for more.
constexpr int kMostReplicas = 1 << 16;
constexpr int kMostPort = 65535;

// Compared as JSON before it is converted: a number that an int cannot be would become any other one.
int number_in(const nlohmann::json& message, const char* key, int lowest, int highest) {
  const auto value = message.find(key);
  if (value != message.end() && value->is_number_integer() && *value >= lowest && *value <= highest) {
    return value->get<int>();
  }
  throw Error(ErrorCode::input_output,
              fmt::format("an agent introduced itself without a number \"{}\" from {} to {}", key, lowest, highest));
}

std::string in_quotes(const std::string& text) {
  return text.empty() ? "none" : "\"" + text + "\"";
}

// Looks through the names of both sides, since one may have a choice that the other lacks.
std::string choice_that_differs(const Introduction& ours, const Introduction& theirs) {
  const auto of = [](const Introduction& side, const std::string& name) {
    const auto choice = side.choices.find(name);
    return choice == side.choices.end() ? std::string("none") : choice->second;
  };
  for (const Introduction* side : {&ours, &theirs}) {
    for (const auto& [name, value] : side->choices) {
      if (of(ours, name) == of(theirs, name)) continue;
      return fmt::format("{} is {} there and {} on host {}", name, of(theirs, name), of(ours, name), ours.host);
    }
  }
  return "";
}

}  // namespace

// The keys are those that parse_introduction() reads; another set of keys is another protocol.
nlohmann::json introduction_message(const Introduction& introduction) {
  return {{"kind", kIntroduction},
          {"protocol", introduction.protocol},
          {"version", introduction.version},
          {"run_id", introduction.run_id},
          {"hosts", introduction.hosts},
          {"host", introduction.host},
          {"replicas", introduction.replicas},
          {"port", introduction.port},
          {"program", introduction.program},
          {"agent", introduction.agent},
          {"separate_folders", introduction.has_separate_folders},
          {"choices", introduction.choices}};
}

Introduction parse_introduction(const nlohmann::json& message) {
  try {
    if (message.at("kind") != kIntroduction) {
      throw Error(ErrorCode::input_output, "an agent sent another message before it had introduced itself");
    }
    Introduction introduction{.protocol = number_in(message, "protocol", 1, 1 << 30)};
    // Another protocol may have other members.
    if (introduction.protocol != kHostsProtocol) return introduction;
    introduction.version = message.at("version").get<std::string>();
    introduction.run_id = message.at("run_id").get<std::string>();
    introduction.hosts = number_in(message, "hosts", 1, static_cast<int>(kMostHosts));
    introduction.host = number_in(message, "host", 0, static_cast<int>(kMostHosts) - 1);
    introduction.replicas = number_in(message, "replicas", 1, kMostReplicas);
    introduction.port = number_in(message, "port", 0, kMostPort);
    introduction.program = message.at("program").get<std::string>();
    introduction.agent = message.at("agent").get<std::string>();
    introduction.has_separate_folders = message.at("separate_folders").get<bool>();
    introduction.choices = message.at("choices").get<std::map<std::string, std::string>>();
    return introduction;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::input_output, "an agent introduced itself with a message that lacks something");
  }
}

// In the order in which a user can do something about it: a wrong version explains all that follows.
std::string difference(const Introduction& ours, const Introduction& theirs) {
  if (theirs.protocol != ours.protocol) {
    return fmt::format(
        "it speaks version {} of the protocol between hosts, and host {} speaks version {}; install "
        "the same version of Holdfast on all hosts",
        theirs.protocol, ours.host, ours.protocol);
  }
  // Before the version: runs on one cluster may well have different ones, and only their ports are mixed up.
  if (theirs.run_id != ours.run_id) {
    return fmt::format(
        "it belongs to another run: its run id is {}, and that of host {} is {}; give each run a port "
        "of its own, or end the other run",
        in_quotes(theirs.run_id), ours.host, in_quotes(ours.run_id));
  }
  if (theirs.version != ours.version) {
    return fmt::format("it has Holdfast {}, and host {} has {}; install the same version on all hosts", theirs.version,
                       ours.host, ours.version);
  }
  if (theirs.hosts != ours.hosts) {
    return fmt::format("it was started for {} hosts, and host {} for {}; give --nnodes the same number on all hosts",
                       theirs.hosts, ours.host, ours.hosts);
  }
  if (theirs.host >= ours.hosts) {
    return fmt::format("its number is {}, but the run has {} hosts; give --node-rank, from 0 to {}", theirs.host,
                       ours.hosts, ours.hosts - 1);
  }
  if (theirs.host == ours.host) {
    return fmt::format("its number is {}, which is that of the head's own host; give each host another --node-rank",
                       theirs.host);
  }
  // A digest of the file, which says nothing about what differs.
  if (theirs.program != ours.program) {
    return fmt::format("its program is not that of host {}; copy the same file to all hosts", ours.host);
  }
  if (theirs.has_separate_folders != ours.has_separate_folders) {
    const auto folder = [](bool is_separate) { return is_separate ? "has a run directory of its own" : "shares one"; };
    return fmt::format("it {}, and host {} {}; give --separate-run-dirs on all hosts or on none",
                       folder(theirs.has_separate_folders), ours.host, folder(ours.has_separate_folders));
  }
  // Last, since another program has other choices, too.
  const std::string choice = choice_that_differs(ours, theirs);
  if (choice.empty()) return "";
  return fmt::format("{}, and the bits of the run depend on it; start the same command on all hosts", choice);
}

}  // namespace holdfast::recovery
