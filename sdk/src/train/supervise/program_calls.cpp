// A replica must know which supervise() call it was started for. Calls are told apart by their run directories, which
// are compared as digests: a path may be long and have any characters. docs/decisions/runs.md

#include "train/supervise/program_calls.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "holdfast/base/digest.h"

namespace holdfast {

// Works for a directory that does not exist yet. If the path cannot be resolved it is used as it is: then the run
// cannot begin either, and its error says why.
ProgramCall call_of(const std::string& run_directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::absolute(run_directory, error);
  const fs::path canonical = error ? fs::path() : fs::weakly_canonical(path, error);
  path = error ? fs::path(run_directory) : canonical.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // for "run/"
  const std::string& text = path.native();
  return {.directory = digest(std::as_bytes(std::span(text))).hex()};
}

std::string to_text(const AssignedCalls& calls) {
  nlohmann::json earlier = nlohmann::json::array();
  for (const ProgramCall& call : calls.earlier) earlier.push_back({call.directory, call.exit_code});
  return nlohmann::json{{"earlier", earlier}, {"own", calls.own.directory}}.dump();
}

AssignedCalls assigned_calls_from(const std::string& text) {
  const nlohmann::json object = nlohmann::json::parse(text);
  AssignedCalls calls{.earlier = {}, .own = {.directory = object.at("own").get<std::string>()}};
  for (const nlohmann::json& call : object.at("earlier")) {
    calls.earlier.push_back({.directory = call.at(0).get<std::string>(), .exit_code = call.at(1).get<int>()});
  }
  return calls;
}

}  // namespace holdfast
