#include "train/state/run_results.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/train/run_results.h"

namespace holdfast {
namespace {

using nlohmann::json;

std::string results_path(const std::string& run_directory) {
  return run_directory + "/results.json";
}

// JSON has no NaN and no infinities.
json result(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double result_from(const json& value) {
  if (!value.is_string()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

json results_object(const Logs& logs) {
  json object = json::object();
  for (const auto& [name, value] : logs) object[name] = result(value);
  return object;
}

Logs results_from(const json& object) {
  Logs logs;
  for (const auto& [name, value] : object.items()) logs[name] = result_from(value);
  return logs;
}

}  // namespace

std::string results_text(const TrainState& state, const Digest& weights) {
  json calls = json::array();
  for (const CallRecord& call : state.calls) {
    json history = json::array();
    for (const Logs& epoch : call.history) history.push_back(results_object(epoch));
    calls.push_back({{"kind", call.kind}, {"results", results_object(call.results)}, {"history", history}});
  }
  return json{{"steps", state.step}, {"weights_digest", weights.hex()}, {"calls", calls}}.dump(1) + "\n";
}

void keep_results(const Replica::Place& place) {
  if (place.results.empty() || place.run_directory.empty()) return;
  const std::string path = results_path(place.run_directory);
  try {
    FileSystem& files = *place.file_system;
    if (files.exists(path) && read_text_file(files, path) == place.results) return;
    write_whole_file(files, path, std::as_bytes(std::span(place.results)));
  } catch (const Error& failure) {
    log(LogLevel::warning, "the results of the run could not be kept in " + path + ": " + failure.what());
  }
}

RunResults run_results(const std::string& run_directory) {
  const std::string path = results_path(run_directory);
  if (!posix_file_system().exists(path)) {
    throw Error(ErrorCode::not_found,
                "there is no " + path + ": no run in that directory has finished, or its disk was full then");
  }
  try {
    const json object = json::parse(read_text_file(posix_file_system(), path));
    RunResults results;
    results.steps = object.at("steps").get<std::int64_t>();
    results.weights_digest = object.at("weights_digest").get<std::string>();
    for (const json& call : object.at("calls")) {
      CallResults& read = results.calls.emplace_back();
      read.kind = call.at("kind").get<std::string>();
      read.results = results_from(call.at("results"));
      for (const json& epoch : call.at("history")) read.history.push_back(results_from(epoch));
    }
    return results;
  } catch (const json::exception&) {
    throw Error(ErrorCode::invalid_file,
                path +
                    " is damaged: it is not the record of results that a run writes; start the "
                    "run again, which writes it anew");
  }
}

}  // namespace holdfast
