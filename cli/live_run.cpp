#include "live_run.h"

#include <nlohmann/json.hpp>

#include "exit_code.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/run_control.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using nlohmann::json;

}  // namespace

json ask(const std::string& run, const json& request, std::chrono::seconds patience) {
  const std::string text =
      recovery::ask_run(run, request.dump(-1, ' ', false, json::error_handler_t::replace), Deadline::after(patience));
  json answer = json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("ok")) {
    throw Error(ErrorCode::input_output, "what listens in " + run + " gave an answer that is none: " +
                                             shortened(text, 100) + "; is its Holdfast of another version?");
  }
  if (answer.at("ok") == true) return answer;
  throw Error(ErrorCode::unavailable, run + ": " + answer.value("error", "refused without a reason"));
}

int scale(const ScaleOptions& options, Console& console) {
  const json answer = ask(options.run, {{"command", "scale"}, {"replicas", options.replicas}}, kAnswerPatience);
  console.out << printable(options.run) << ": " << describe_count(answer.at("target").get<std::uint64_t>(), "replica")
              << " from the next step on which all are ready\n";
  return kDone;
}

int snapshot(const SnapshotOptions& options, Console& console) {
  // The watchdog's own refusal says more than silence does.
  const json answer = ask(options.run, {{"command", "snapshot"}, {"seconds", options.seconds}},
                          std::chrono::seconds(options.seconds) + kAnswerPatience);
  console.out << printable(answer.at("path").get<std::string>()) << ": durable, step "
              << answer.at("step").get<std::int64_t>() << "\n";
  return kDone;
}

}  // namespace holdfast::cli
