#pragma once

// The first message of an agent to the head: which run and which program it belongs to. An agent that differs is sent
// home with a sentence, because its ranks would compute other bits, or would wait for something that never comes.

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {

// Raised with each change of the messages between agents and head.
inline constexpr int kHostsProtocol = 2;

struct Introduction {
  int protocol = kHostsProtocol;
  std::string version{};  // of Holdfast
  std::string run_id{};
  int hosts = 0;
  int host = 0;                       // the number of the sender's
  int replicas = 0;                   // that the sender starts
  int port = 0;                       // at which its agent listens for connections of the other agents; 0: none
  std::string program{};              // its digest
  std::string agent{};                // tells the sender from another process that says it is the same host
  bool has_separate_folders = false;  // its run directory is that of its host alone
  std::map<std::string, std::string> choices{};  // options that bits depend on, by name
};

nlohmann::json introduction_message(const Introduction& introduction);
// Throws Error{input_output} for a message that is not an introduction. Only its protocol is read of one of another
// protocol.
Introduction parse_introduction(const nlohmann::json& message);

// Why the agent of host `theirs.host` cannot be part of the run; empty if it can. For a user who reads it there.
std::string difference(const Introduction& ours, const Introduction& theirs);

}  // namespace holdfast::recovery
