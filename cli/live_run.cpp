// Requests to a live run. The command and the watchdog may be of different versions, so an answer
// is checked before it is used, and a refusal is passed on in the watchdog's own words.
// docs/decisions/live-runs.md

#include "live_run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/recovery/run_control.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using Json = nlohmann::json;

// Any byte may come from a file name, so what is not UTF-8 is replaced.
std::string as_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Json ask(const std::string& run, const Json& request, std::chrono::seconds patience) {
  const std::string text = recovery::ask_run(run, as_text(request), Deadline::after(patience));
  // What is not JSON becomes a discarded value and not an exception, and fails the check below.
  Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("ok")) refuse_answer(run, text);
  if (answer.at("ok") == true) return answer;
  const Json reason = answer.value("error", Json("refused without a reason"));
  if (!reason.is_string()) refuse_answer(run, text);
  throw Error(ErrorCode::unavailable, fmt::format("{}: {}", run, reason.get<std::string>()));
}

void refuse_answer(const std::string& run, const std::string& answer) {
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the watchdog of {} gave an answer that this command does not understand: {}; does the run use "
                  "another version of Holdfast?",
                  run, shortened(answer, 100)));
}

std::string describe_scale(const std::string& run, const Json& answer) {
  // Both at() and get() throw where the answer of another version lacks a part, or has it in another form.
  try {
    return fmt::format("{}: {} from the next step at which all are ready\n", printable(run),
                       describe_count(answer.at("target").get<std::int64_t>(), "replica"));
  } catch (const Json::exception&) {
    refuse_answer(run, as_text(answer));
  }
}

std::string describe_snapshot(const std::string& run, const Json& answer) {
  try {
    return fmt::format("{}: durable, step {}\n", printable(answer.at("path").get<std::string>()),
                       answer.at("step").get<std::int64_t>());
  } catch (const Json::exception&) {
    refuse_answer(run, as_text(answer));
  }
}

namespace {

struct ScaleOptions {
  std::string run;
  int replicas = 0;
};

struct SnapshotOptions {
  std::string run;
  int seconds = 600;
};

int scale(const ScaleOptions& options, Console& console) {
  // The number is not checked here: only the watchdog knows its range, and its refusal says it.
  const Json answer = ask(options.run, {{"command", "scale"}, {"replicas", options.replicas}}, kAnswerPatience);
  console.out << describe_scale(options.run, answer);
  return kDone;
}

int snapshot(const SnapshotOptions& options, Console& console) {
  // Wait longer than the watchdog does: its own refusal says more than a timeout here.
  const Json answer = ask(options.run, {{"command", "snapshot"}, {"seconds", options.seconds}},
                          std::chrono::seconds(options.seconds) + kAnswerPatience);
  console.out << describe_snapshot(options.run, answer);
  return kDone;
}

}  // namespace

void add_scale(Subcommands& commands) {
  commands.add<ScaleOptions>(
      "scale", "Change the number of replicas of a live run at its next step; the results keep their bits",
      [](CLI::App& command, ScaleOptions& options) {
        command.add_option("RUN", options.run, kRunDirectory)->required();
        command.add_option("REPLICAS", options.replicas, "The new number, from 1 to the run's number of shards")
            ->required();
      },
      [&commands](const ScaleOptions& options) { return scale(options, commands.console); });
}

void add_snapshot(Subcommands& commands) {
  commands.add<SnapshotOptions>(
      "snapshot", "Ask a live run to write a savepoint at its next step, and wait until it is durable",
      [](CLI::App& command, SnapshotOptions& options) {
        command.add_option("RUN", options.run, kRunDirectory)->required();
        // The watchdog has the same range (run_requests.cpp). A wrong number is found here without a run.
        command.add_option("--timeout", options.seconds, "The seconds to wait for the savepoint")
            ->check(CLI::Range(1, 3600).description(""))
            ->capture_default_str();
      },
      [&commands](const SnapshotOptions& options) { return snapshot(options, commands.console); });
}

}  // namespace holdfast::cli
