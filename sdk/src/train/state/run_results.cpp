// Results travel through a file, because the processes that train are not the one that asks for the results. A program
// that trains alone writes no file; its results are remembered in the process. docs/decisions/runs.md

#include "train/state/run_results.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/train/run_results.h"
#include "train/state/logs_json.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

std::string results_path(const std::string& run_directory) {
  return run_directory + "/results.json";
}

// Results of runs that were trained alone in this process: texts by the path of the run directory.
// A process may train alone for several directories, one after the other or in threads.
struct Remembered {
  std::mutex mutex{};
  std::map<std::string, std::string> texts{};
};

Remembered& remembered() {
  static Remembered all;
  return all;
}

// "run" and "./run/" are one directory.
std::string key_of(const std::string& run_directory) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(run_directory, error);
  // The empty part adds a slash, so that both spellings end alike.
  return (absolute / "").lexically_normal().string();
}

std::optional<std::string> remembered_results(const std::string& run_directory) {
  const std::scoped_lock lock(remembered().mutex);
  const auto text = remembered().texts.find(key_of(run_directory));
  return text == remembered().texts.end() ? std::nullopt : std::optional(text->second);
}

// What is missing or of another type throws, and the caller says that the file is damaged.
RunResults results_from_text(const std::string& text) {
  const Json object = Json::parse(text);
  RunResults results;
  results.steps = object.at("steps").get<std::int64_t>();
  results.weights_digest = object.at("weights_digest").get<std::string>();
  for (const Json& call : object.at("calls")) {
    CallResults& read = results.calls.emplace_back();
    read.kind = call.at("kind").get<std::string>();
    read.results = logs_from(call.at("results"));
    for (const Json& epoch : call.at("history")) read.history.push_back(logs_from(epoch));
    if (!call.contains("skipped_samples")) continue;
    const Json& skipped = call.at("skipped_samples");
    read.skipped_samples = {.count = skipped.at("count").get<std::int64_t>(),
                            .first = skipped.at("first").get<std::vector<std::string>>()};
  }
  return results;
}

}  // namespace

// A later Trainer of a run appends its calls to those of the Trainers before it.
std::string results_text(const TrainState& state, const Digest& weights, const std::string& earlier,
                         const std::map<std::size_t, SkippedSamples>& skipped) {
  const Json before = earlier.empty() ? Json() : Json::parse(earlier);
  Json calls = earlier.empty() ? Json::array() : before.at("calls");
  // Each Trainer counts its steps from 0.
  const std::int64_t steps_before = earlier.empty() ? 0 : before.at("steps").get<std::int64_t>();
  for (std::size_t i = 0; i < state.calls.size(); ++i) {
    const CallRecord& call = state.calls[i];
    Json history = Json::array();
    for (const Logs& epoch : call.history) history.push_back(logs_json(epoch));
    Json written = {{"kind", call.kind}, {"results", logs_json(call.results)}, {"history", history}};
    if (const auto found = skipped.find(i); found != skipped.end()) {
      written["skipped_samples"] = {{"count", found->second.count}, {"first", found->second.first}};
    }
    calls.push_back(std::move(written));
  }
  return Json{{"steps", steps_before + state.step}, {"weights_digest", weights.hex()}, {"calls", calls}}.dump(
             1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

void note_results(Replica::Context& context, const TrainState& state, const Digest& weights) {
  context.results = results_text(state, weights, context.earlier_results, context.skipped);
}

void keep_results(const Replica::Context& context) {
  // Without a finished call there is nothing to keep, and without a directory no place.
  if (context.results.empty() || context.run_directory.empty()) return;
  const std::string path = results_path(context.run_directory);
  try {
    FileSystem& files = *context.file_system;
    // Another rank may have written them. An equal file is left alone, so that its time stays.
    if (files.exists(path) && read_text_file(files, path) == context.results) return;
    write_whole_file(files, path, std::as_bytes(std::span(context.results)));
  } catch (const Error& failure) {
    // The weights are safe in a savepoint, so a full disk must not end the run here.
    log(LogLevel::warning, fmt::format("the results of the run could not be written to {}: {}", path, failure.what()));
  }
}

void remember_results(const Replica::Context& context) {
  const std::scoped_lock lock(remembered().mutex);
  remembered().texts[key_of(context.run_directory)] = context.results;
}

RunResults run_results(const std::string& run_directory) {
  // What this process trained last counts more than a file of an earlier run.
  if (const std::optional<std::string> text = remembered_results(run_directory)) {
    if (!text->empty()) return results_from_text(*text);
    throw Error(
        ErrorCode::not_found,
        fmt::format("the training for {}, alone in this process, has no results: it finished no fit() or evaluate()",
                    run_directory));
  }
  const std::string path = results_path(run_directory);
  if (!posix_file_system().exists(path)) {
    throw Error(
        ErrorCode::not_found,
        fmt::format(
            "there is no {}: no run has finished in that directory, or its disk was full then; start the run again, "
            "which writes the file when it ends",
            path));
  }
  const std::string text = read_text_file(posix_file_system(), path);
  try {
    return results_from_text(text);
  } catch (const std::exception&) {
    throw Error(
        ErrorCode::invalid_file,
        fmt::format("{} is damaged: it is not the record of results that a run writes; start the run again, which "
                    "writes it anew",
                    path));
  }
}

}  // namespace holdfast
