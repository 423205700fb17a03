// A check leaves a run directory as it was: a run may be live there, or begin there next. Its own mark has another name
// than that of a head, and goes with the check. docs/decisions/host-folders.md

#include "agents/host_facts.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "agents/host_messages.h"
#include "agents/hosts_folder.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "links/link_token.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;

std::string doctor_mark_of(const std::string& run_directory) {
  return hosts_folder_of(run_directory) + "/doctor";
}

std::string quoted_or_none(const std::string& text) {
  return text.empty() ? "not given" : "\"" + text + "\"";
}

// `problem` counts if `is_well` is false.
HostCheck check(int host, const std::string& what, bool is_well, const std::string& found, const std::string& problem,
                const std::string& remedy) {
  if (is_well) return {.host = host, .what = what, .found = found};
  return {.host = host, .what = what, .problem = problem, .remedy = remedy};
}

// The file of a host that checks whether it can write. It goes also when that fails half way.
struct RemovedAtEnd {
  const std::string& path;
  ~RemovedAtEnd() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

}  // namespace

// The keys are those that parse_facts() reads.
nlohmann::json facts_message(const HostFacts& facts) {
  return {{"kind", kFacts},
          {"version", facts.version},
          {"arithmetic", facts.arithmetic},
          {"replicas", facts.replicas},
          {"program", facts.program},
          {"command", facts.command},
          {"run_directory", facts.run_directory},
          {"own_folder", facts.has_own_folder},
          {"folder_problem", facts.folder_problem}};
}

HostFacts parse_facts(const nlohmann::json& message) {
  return {.version = message.at("version").get<std::string>(),
          .arithmetic = message.at("arithmetic").get<std::string>(),
          .replicas = whole_number_in<int>(message, "replicas"),
          .program = message.at("program").get<std::string>(),
          .command = message.at("command").get<std::string>(),
          .run_directory = message.at("run_directory").get<std::string>(),
          .has_own_folder = message.at("own_folder").get<bool>(),
          .folder_problem = message.at("folder_problem").get<std::string>()};
}

nlohmann::json links_message(const std::vector<LinkPeer>& peers) {
  nlohmann::json list = nlohmann::json::array();
  for (const LinkPeer& peer : peers) {
    list.push_back(
        {{"host", peer.host}, {"address", peer.address.host}, {"port", peer.address.port}, {"key", to_text(peer.key)}});
  }
  return {{"kind", kLinks}, {"peers", list}};
}

// The first host has checked the addresses: it saw the connections that came from there.
std::vector<LinkPeer> parse_links(const nlohmann::json& message) {
  std::vector<LinkPeer> peers;
  for (const nlohmann::json& peer : message.at("peers")) {
    peers.push_back({.host = whole_number_in<int>(peer, "host"),
                     .address = {.host = peer.at("address").get<std::string>(),
                                 .port = whole_number_in<std::uint16_t>(peer, "port")},
                     .key = link_key_from(peer.at("key").get<std::string>())});
  }
  return peers;
}

// In the order in which a user can do something about it: a wrong version explains what follows.
std::vector<HostCheck> compare(const HostFacts& of_head, const HostFacts& theirs, int host) {
  // Each difference is a line, also where one explains the others: all can then be corrected before the next check.
  std::vector<HostCheck> checks{
      check(host, "Holdfast", theirs.version == of_head.version, theirs.version,
            fmt::format("it has Holdfast {}, and host 0 has {}", theirs.version, of_head.version),
            "install the same version on all hosts"),
      check(host, "arithmetic", theirs.arithmetic == of_head.arithmetic, theirs.arithmetic,
            fmt::format("it computes with {}, and host 0 with {}, which gives other bits", theirs.arithmetic,
                        of_head.arithmetic),
            "take hosts with the same kind of processor and the same libraries, or limit all of them to the "
            "instructions that each has, with ONEDNN_MAX_CPU_ISA"),
      check(host, "replicas", theirs.replicas == of_head.replicas, std::to_string(theirs.replicas),
            fmt::format("it would start {}, and host 0 would start {}", theirs.replicas, of_head.replicas),
            "give --replicas, the same number on all hosts")};
  if (!of_head.command.empty() || !theirs.command.empty()) {
    checks.push_back(check(
        host, "command", theirs.command == of_head.command, theirs.command,
        fmt::format("it is {} there and {} on host 0", quoted_or_none(theirs.command), quoted_or_none(of_head.command)),
        "give the same command on all hosts"));
  }
  // Without a program on one side the commands differ, which has a line of its own.
  if (!of_head.program.empty() && !theirs.program.empty()) {
    checks.push_back(check(host, "program", theirs.program == of_head.program, "the file of host 0",
                           "its file is not that of host 0", "copy the same file to all hosts"));
  }
  // One line at most is about the folder: what follows would only repeat its cause.
  if (theirs.has_own_folder != of_head.has_own_folder) {
    const auto folder = [](bool is_own) { return is_own ? "has one of its own" : "shares one"; };
    checks.push_back(
        check(host, "run directory", false, "",
              fmt::format("it {}, and host 0 {}", folder(theirs.has_own_folder), folder(of_head.has_own_folder)),
              "give --separate-run-dirs on all hosts or on none"));
  } else if (theirs.has_own_folder) {
    checks.push_back(check(host, "run directory", theirs.folder_problem.empty(),
                           fmt::format("{} of its own", theirs.run_directory),
                           fmt::format("{}: {}", theirs.run_directory, theirs.folder_problem),
                           "give with --run-dir a folder on a disk of this host that it may write"));
  } else if (theirs.run_directory != of_head.run_directory) {
    checks.push_back(check(host, "run directory", false, "",
                           fmt::format("it is {} there and {} on host 0", theirs.run_directory, of_head.run_directory),
                           "give --run-dir the same folder on all hosts"));
  } else {
    checks.push_back(check(host, "run directory", theirs.folder_problem.empty(), theirs.run_directory,
                           fmt::format("{}: {}", theirs.run_directory, theirs.folder_problem),
                           "give with --run-dir a folder that all hosts share under one name and may write"));
  }
  return checks;
}

DoctorMark::Removal::Removal(const std::string& run_directory) : run_directory_(run_directory) {
  // Looked for before anything is made. Afterwards nobody knows which folders were made for the check.
  for (fs::path folder = run_directory; !folder.empty() && !is_there(folder); folder = folder.parent_path()) {
    missing_.push_back(folder);
  }
}

DoctorMark::Removal::~Removal() {
  std::error_code ignored;
  fs::remove(doctor_mark_of(run_directory_), ignored);
  // These remove a folder only if it is empty.
  fs::remove(hosts_folder_of(run_directory_), ignored);
  for (const std::string& folder : missing_) fs::remove(folder, ignored);
}

DoctorMark::DoctorMark(const std::string& run_directory) : removal_(run_directory), text_(to_text(new_link_key())) {
  create_hosts_folder(run_directory);
  write_text(doctor_mark_of(run_directory), text_);
}

// Written, too: rank 0 may be on any host, and writes savepoints there.
std::string why_folder_is_of_no_use(const HostFacts& facts, const std::string& text, int host) {
  const std::string path = doctor_mark_of(facts.run_directory);
  if (!facts.has_own_folder && !is_there(path)) return "it does not find there what host 0 has just written";
  // The mark is a random key, so an equal text is the same file and not one that an earlier check has left.
  const std::string there = text_in(path);
  if (facts.has_own_folder && there == text) return "it is the folder of host 0, so leave out --separate-run-dirs";
  if (!facts.has_own_folder && there != text) {
    return "it finds there another file than the one that host 0 has just written";
  }
  try {
    // No other host writes there, so the same file will do, which goes with the folders that are made for it.
    if (facts.has_own_folder) {
      const DoctorMark written(facts.run_directory);
      return "";
    }
    const std::string own = fmt::format("{}-{}", path, host);
    // Before the file is written, so that a disk that fills half way leaves nothing.
    const RemovedAtEnd removed{own};
    write_text(own, text);
  } catch (const Error& error) {
    return fmt::format("it cannot write there: {}", error.what());
  }
  return "";
}

}  // namespace holdfast::recovery
