// Requests are met without waiting. A request for a savepoint is answered when rank 0 reports that it is durable. If
// the generation ends before rank 0 began it, the next generation's rank 0 is asked again. docs/decisions/live-runs.md

#include "control/run_requests.h"

#include <unistd.h>

#include <chrono>

#include <fmt/format.h>

#include "control/control_socket.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;

constexpr int kSavepointSeconds = 600;
// The request of a peer that is gone stays open as long as this, and counts against SavepointRequests::kMost.
constexpr int kMostSavepointSeconds = 3600;

constexpr const char* kIsPlain =
    "the program does not register with the watchdog, so its processes can only start and end together";

// 0 for a value that is not an int; no request may ask for 0.
int number_in(const Json& request, const char* name, int otherwise) {
  const Json value = request.value(name, Json(otherwise));
  if (!value.is_number_integer()) return 0;
  const auto number = value.get<std::int64_t>();
  return number == static_cast<int>(number) ? static_cast<int>(number) : 0;
}

}  // namespace

// A peer may send any JSON. A wrong type is its mistake, and gets a sentence.
void RunRequests::take(const Json& request, const Answer& answer, Moment now) {
  try {
    obey(request, answer, now);
  } catch (const Json::exception& error) {
    answer(refusal(std::string("the request cannot be read: ") + error.what()));
  }
}

void RunRequests::obey(const Json& request, const Answer& answer, Moment now) {
  const auto command = request.at("command").get<std::string>();
  if (command == "status") return answer(status(now));
  if (command == "scale") return answer(scale(number_in(request, "replicas", 0)));
  if (command == "snapshot") return snapshot(number_in(request, "seconds", kSavepointSeconds), answer, now);
  answer(refusal(fmt::format("\"{}\" is not one of the commands status, scale and snapshot", command)));
}

void RunRequests::look(Moment now) {
  status_.look(run_.member_statuses(), now);
  savepoints_.look(now);
}

// Looks now, so that the answer is not older than the question.
Json RunRequests::status(Moment now) {
  const std::map<int, MemberStatus> member_statuses = run_.member_statuses();
  status_.look(member_statuses, now);
  Json body = status_.describe(run_.state(), member_statuses, run_.restarts(), now);
  body["device_events"] = run_.device_events ? run_.device_events(now) : Json::array();
  if (body.contains("hosts") && run_.address_of) {
    for (Json& host : body["hosts"]) host["address"] = run_.address_of(host.at("host").get<int>());
  }
  body["ok"] = true;
  body["watchdog_pid"] = ::getpid();
  body["max_replicas"] = run_.max_replicas;
  body["open_savepoint_requests"] = savepoints_.size();
  return body;
}

Json RunRequests::scale(int replicas) {
  if (replicas < 1 || replicas > run_.max_replicas) {
    return refusal(
        fmt::format("this run can have 1 to {} replicas; ask for a number in this range", run_.max_replicas));
  }
  if (run_.state().policy.all_start_together) return refusal(kIsPlain);
  // The supervisor decides at once, so its target shows whether it took the request.
  run_.scale(replicas);
  if (run_.state().target != replicas) return refusal("the run is ending, so its number of replicas stays as it is");
  return {{"ok", true}, {"target", replicas}};
}

// Each request has an end, because the peer waits for its answer.
void RunRequests::snapshot(int seconds, const Answer& answer, Moment now) {
  if (seconds < 1 || seconds > kMostSavepointSeconds) {
    return answer(refusal(fmt::format("a savepoint may take 1 to {} seconds", kMostSavepointSeconds)));
  }
  const State& state = run_.state();
  if (state.policy.all_start_together) return answer(refusal(kIsPlain));
  if (state.is_stop_requested || (state.phase != RunPhase::running && state.phase != RunPhase::gathering)) {
    return answer(refusal("the run is ending, so no further savepoint is made on request"));
  }
  if (savepoints_.add(answer, now + std::chrono::seconds(seconds)) == 0) {
    return answer(refusal(
        fmt::format("{} requests for a savepoint are waiting already; ask again later", SavepointRequests::kMost)));
  }
  pass_on_savepoints();
}

void RunRequests::pass_on_savepoints() {
  // While a generation gathers there is no rank 0 to ask. generation_opened() asks it then.
  if (savepoints_.newest() != 0 && run_.state().phase == RunPhase::running) {
    // The newest request is enough, since its savepoint answers those before it.
    run_.ask_for_savepoint(savepoints_.newest());
  }
}

void RunRequests::savepoint_made(int number, const std::string& path, std::int64_t step) {
  savepoints_.answer(number, {{"ok", true}, {"path", path}, {"step", step}});
}

void RunRequests::savepoint_not_made(int number, const std::string& why) {
  savepoints_.answer(number, refusal(why));
}

void RunRequests::run_ended(const std::string& sentence) {
  savepoints_.refuse_all(fmt::format("the run ended before the savepoint was durable: {}", sentence));
}

}  // namespace holdfast::recovery
