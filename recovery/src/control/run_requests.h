#pragma once

// The requests to a live run (holdfast/recovery/run_control.h): status, scale and snapshot. Independent of the
// socket, and of the clock: the caller passes the time.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "control/run_status.h"
#include "decide/supervisor.h"
#include "memory/savepoint_requests.h"

namespace holdfast::recovery {

class RunRequests {
 public:
  using Answer = SavepointRequests::Answer;

  // The parts of the run that requests need.
  struct Run {
    int max_replicas = kMaxReplicas;
    std::vector<std::string> devices{};  // by device slot; empty: the slots have no names
    std::function<const State&()> state;
    std::function<std::map<int, MemberStatus>()> member_statuses;
    std::function<const RestartCounts&()> restarts;
    std::function<nlohmann::json(Moment now)> device_events{};  // a list; empty: no list is kept
    std::function<std::string(int host)> address_of{};          // of a run over several hosts; "": not known yet
    std::function<void(int replicas)> scale;
    // Asks rank 0 of the running generation. Called again in each generation until there is an answer.
    std::function<void(int number)> ask_for_savepoint;
  };

  explicit RunRequests(Run run) : run_(std::move(run)), status_(run_.devices) {}

  // `answer` is called once, now or later.
  void take(const nlohmann::json& request, const Answer& answer, Moment now);
  // Call it often. It updates rates, and refuses requests whose time has passed.
  void look(Moment now);

  void savepoint_made(int number, const std::string& path, std::int64_t step);
  void savepoint_not_made(int number, const std::string& why);
  void generation_opened() { pass_on_savepoints(); }
  void run_ended(const std::string& sentence);

 private:
  void obey(const nlohmann::json& request, const Answer& answer, Moment now);
  nlohmann::json status(Moment now);
  nlohmann::json scale(int replicas);
  void snapshot(int seconds, const Answer& answer, Moment now);
  void pass_on_savepoints();

  const Run run_;
  RunStatus status_;
  SavepointRequests savepoints_;
};

}  // namespace holdfast::recovery
