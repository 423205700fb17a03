// The report is read from the journal alone, so it works for live runs, ended runs and dead ones, and on another host.
// The journal has a line for each event; a Reader goes through them once and joins the lines of each incident by
// member. Journals of old versions are read, too. See docs/decisions/journal.md.

#include "holdfast/recovery/run_report.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/regular_file.h"
#include "holdfast/recovery/exit_codes.h"
#include "journal/device_slot_story.h"
#include "journal/host_story.h"
#include "journal/journal.h"
#include "journal/recorded_actions.h"
#include "journal/slow_story.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;
using Incident = RunReport::Incident;

// Events that show a failure, and what the watchdog saw then. Where the text ends with a colon, the event says more.
// "exited" is not among them, because a process that has finished exits as well.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEvidence{
    {{"died", "the kernel released the mutex that it holds while it lives"},
     {"hang_detected", "hung: "},
     {"slow", "slow: "},
     {"device_failed", "its device failed: "},
     {"failure_reported", "it reported: "},
     {"start_failed", "it could not be started: "}}};

bool tells_of_failure(const std::string& event) {
  return std::any_of(kEvidence.begin(), kEvidence.end(), [&](const auto& row) { return row.first == event; });
}

// What was seen, as the report says it.
std::string evidence_of(const std::string& event, const Json& line) {
  for (const auto& [name, seen] : kEvidence) {
    if (name == event) return fmt::format("{}{}", seen, seen.ends_with(": ") ? line.value("what", "") : "");
  }
  if (line.contains("signal"))
    return fmt::format("the kernel confirmed its end by signal {}", line.at("signal").get<int>());
  return fmt::format("the kernel confirmed its end with exit code {}", line.value("exit_code", -1));
}

// Takes the lines in their order, because a line may add to incidents that earlier lines have begun.
class Reader {
 public:
  // A line that is torn, or that Holdfast did not write, is counted and skipped. It must not hide the rest of the
  // story.
  void take(const std::string& text) {
    const Json line = Json::parse(text, nullptr, false);
    try {
      if (!line.is_object()) throw Error(ErrorCode::invalid_file, "a line is torn");
      take_line(line);
    } catch (const Json::exception&) {
      ++report_.skipped_lines;
    } catch (const Error&) {
      ++report_.skipped_lines;
    }
  }

  RunReport report() {
    report_.slow_replicas = slow_story_.replicas();
    report_.rests = slot_story_.rests();
    report_.absences = host_story_.absences();
    return std::move(report_);
  }

 private:
  // Only decisions of the watchdog have a "reason". Names of events that workers report are free.
  void take_line(const Json& line) {
    const auto event = line.at("event").get<std::string>();
    const auto time = line.at("time").get<double>();
    if (line.contains("reason")) {
      take_decision(event, time, line);
    } else if (line.contains("restart")) {
      restarts_.push_back(restart_from_json(line.at("restart")));
    } else if (line.contains("details")) {
      take_note(event, time, line);
    } else if (event == "crashed") {
      take_crash(line);
    } else if (event == "device_event" || event == "devices_unwatched") {
      report_.remarks.push_back({time, line.at("what").get<std::string>()});
    } else if (event == "straggler") {
      slow_story_.take_straggler(time, line);
    } else if (event == "dealt") {
      slow_story_.take_assignment(time, line);
    } else if (event == "watchdog_started") {
      begin_start(time, line);
    }
  }

  // The processes of the last watchdog are gone, so nothing more can happen to its incidents.
  void begin_start(double time, const Json& line) {
    report_.starts.push_back({.time = time,
                              .pid = line.at("pid").get<int>(),
                              .replicas = line.at("replicas").get<int>(),
                              .hosts = line.value("hosts", 1)});
    open_.clear();
    restarts_.clear();
    by_rank_.clear();
    is_training_ = false;
    generations_before_ = report_.generations;
    // Failures of the last watchdog did not end the run of this one.
    incidents_at_progress_ = report_.incidents.size();
    pids_.clear();
    slow_story_.begin_start();
    slot_story_.begin_start();
    host_story_.begin_start();
  }

  // Workers choose the details of their events, so only those of known events are read.
  void take_note(const std::string& event, double time, const Json& line) {
    const Json& details = line.at("details");
    if (!details.is_object()) return;
    RunReport::Savepoints& savepoints = report_.savepoints;
    if (event == "savepoint") {
      ++savepoints.durable;
      savepoints.newest_path = details.at("path").get<std::string>();
      savepoints.newest_step = details.at("step").get<std::int64_t>();
      report_.furthest_step = std::max(report_.furthest_step, savepoints.newest_step);
    } else if (event == "savepoint_skipped") {
      ++savepoints.skipped;
    } else if (event == "savepoint_failed" || event == "savepoint_set_aside" || event == "savepoint_passed_over") {
      // A full disk makes such a line for each savepoint. The first ones say what there is to say.
      if (savepoints.problems.size() < RunReport::kMostProblems) {
        savepoints.problems.push_back(
            fmt::format("{}: {}", details.at("path").get<std::string>(), details.value("why", "")));
      }
    } else if (event == "resumed") {
      resumed({details.at("path").get<std::string>(), details.at("step").get<std::int64_t>()});
    } else if (event == "fit_finished") {
      report_.furthest_step = std::max(report_.furthest_step, details.value("step", std::int64_t{-1}));
    } else if (event == "samples_skipped") {
      note_skipped_samples(time, details);
    }
  }

  // Each start and each new primary says it again. The report says it once.
  void note_skipped_samples(double time, const Json& details) {
    const auto first = details.at("first").get<std::vector<std::string>>();
    const auto count = details.at("count").get<std::int64_t>();
    std::string sentence = fmt::format("{} left out of the data, as the program asked. The first: {}",
                                       count == 1 ? "1 bad sample was" : fmt::format("{} bad samples were", count),
                                       fmt::join(first, "; "));
    const bool is_known = std::ranges::any_of(
        report_.remarks, [&](const RunReport::Remark& remark) { return remark.sentence == sentence; });
    if (!is_known) report_.remarks.push_back({time, std::move(sentence)});
  }

  // A state was read from a file or from memory. After a failure it says how many steps are computed again. Otherwise
  // it is the state with which this watchdog began.
  void resumed(const RunReport::Origin& origin) {
    bool explains_an_incident = false;
    for (const std::size_t index : open_) {
      Incident& incident = report_.incidents[index];
      if (!incident.opened || incident.progressed) continue;
      explains_an_incident = true;
      incident.resumed = origin;
      incident.repeated = std::max<std::int64_t>(0, report_.furthest_step - origin.step);
    }
    // Only the first one is the state with which the watchdog began. Replicas that go back because of a NaN say it too,
    // in another generation.
    if (explains_an_incident || report_.starts.empty() || report_.generations > generations_before_ + 1) return;
    if (!report_.starts.back().resumed) report_.starts.back().resumed = origin;
  }

  // The line of a crash comes after the line of the exit.
  void take_crash(const Json& line) {
    const int member = line.at("member").get<int>();
    const auto incident = std::find_if(report_.incidents.rbegin(), report_.incidents.rend(),
                                       [member](const Incident& other) { return other.member == member; });
    if (incident == report_.incidents.rend() || incident->pid != line.at("pid").get<int>()) return;
    incident->frames = line.at("frames").get<std::vector<std::string>>();
  }

  void take_decision(const std::string& event, double time, const Json& line) {
    const RecordedActions actions = recorded_actions(line);
    const auto step = line.value("step", std::int64_t{-1});
    report_.furthest_step = std::max(report_.furthest_step, step);
    if (line.contains("member")) pids_[line.at("member").get<int>()] = line.value("pid", 0);
    host_story_.take_decision(event, restarts_.empty() ? time : restarts_.front().detected_unix_seconds, line);
    // The incident comes first, because the steps below refer to it.
    note_failure(event, time, line, actions);
    if (event == "host_lost") note_losses_with_host(time, line, actions);
    for (const auto& [member, cause] : actions.failures) settle_cause(member, cause);
    slot_story_.take_decision(time, line, last_incident_index_of(line.value("member", -1)));
    slow_story_.take_decision(event, time, line, actions);
    // After its exit nothing more happens to a member. One whose host is back may fail once more.
    if (event == "exited") last_incident_of_.erase(line.value("member", -1));
    if (event == "host_lost") {
      for (const auto& [member, cause] : actions.failures) last_incident_of_.erase(member);
    }
    if (actions.cancelled) note_cancel(time);
    if (actions.opened) note_open(*actions.opened, actions.members, time);
    if (event == "progressed") note_progress(time);
    if (actions.finish) note_end(*actions.finish, time);
    const auto reason = line.at("reason").get<std::string>();
    if (event == "scale_requested" || event == "stop_requested") report_.remarks.push_back({time, reason});
  }

  // The first evidence of a failure begins an incident. Later evidence joins it by member: a death is seen before its
  // exit.
  void note_failure(const std::string& event, double time, const Json& line, const RecordedActions& actions) {
    const int member = line.value("member", -1);
    // A death is recorded as a failure only with its exit. Until then the order to kill the process shows it.
    const bool is_new = actions.has_failure_of(member) || (tells_of_failure(event) && actions.killed.contains(member));
    Incident* incident = open_incident_of(member);
    if (incident == nullptr && is_new) incident = &begin_incident(member, time, line);
    const bool is_evidence = tells_of_failure(event) || event == "exited";
    if (incident != nullptr && is_evidence) incident->evidence.push_back(evidence_of(event, line));
    if (incident != nullptr && incident->cause.empty()) incident->cause = line.value("what", "");
  }

  // A line about a host names no process. Those that were lost with it are in its actions.
  void note_losses_with_host(double time, const Json& line, const RecordedActions& actions) {
    for (const auto& [member, cause] : actions.failures) {
      const Json of_member = {{"pid", pids_[member]}, {"host", line.at("host")}};
      begin_incident(member, time, of_member)
          .evidence.push_back(fmt::format("its host was lost: {}", line.value("what", "")));
    }
  }

  int last_incident_index_of(int member) const {
    const auto found = last_incident_of_.find(member);
    return found == last_incident_of_.end() ? -1 : static_cast<int>(found->second);
  }

  Incident* open_incident_of(int member) {
    const int index = last_incident_index_of(member);
    return index < 0 ? nullptr : &report_.incidents[static_cast<std::size_t>(index)];
  }

  // Training waits for a lost member of the generation, so its incident stays open until training goes on. A newcomer
  // has no rank, and its incident is complete at once.
  Incident& begin_incident(int member, double time, const Json& line) {
    Incident incident{.member = member,
                      .pid = line.value("pid", 0),
                      .host = line.value("host", -1),
                      .step = line.value("step", std::int64_t{-1})};
    incident.noticed = time;
    incident.replicas = is_training_ ? static_cast<int>(by_rank_.size()) : 0;
    const auto found = std::find(by_rank_.begin(), by_rank_.end(), member);
    if (found != by_rank_.end()) {
      incident.rank = static_cast<int>(found - by_rank_.begin());
      incident.generation = generation_;
      incident.replicas = static_cast<int>(by_rank_.size());
      open_.push_back(report_.incidents.size());
    }
    last_incident_of_[member] = report_.incidents.size();
    report_.incidents.push_back(std::move(incident));
    return report_.incidents.back();
  }

  // The line of the restart comes before the line of the decision that records the failure.
  void settle_cause(int member, const std::string& cause) {
    const std::optional<Restart> restart =
        restarts_.empty() ? std::nullopt : std::optional<Restart>(std::move(restarts_.front()));
    // In their order: lines of restarts stand before the decision that they belong to.
    if (restart) restarts_.pop_front();
    Incident* incident = open_incident_of(member);
    if (incident == nullptr) return;
    incident->cause = cause;
    if (!restart) return;
    incident->noticed = restart->detected_unix_seconds;
    incident->step = restart->step;
  }

  void note_cancel(double time) {
    is_training_ = false;
    for (const std::size_t index : open_) {
      Incident& incident = report_.incidents[index];
      if (incident.generation == generation_ && !incident.cancelled) incident.cancelled = time;
    }
  }

  // Open incidents get the next generation, and are whole once it has as many replicas as before.
  void note_open(int generation, const std::vector<int>& by_rank, double time) {
    ++report_.generations;
    for (const std::size_t index : open_) {
      Incident& incident = report_.incidents[index];
      if (!incident.opened) {
        incident.opened = time;
        incident.next_generation = generation;
        incident.next_replicas = static_cast<int>(by_rank.size());
        incident.survivors = count_survivors(by_rank, incident.member);
      }
      if (static_cast<int>(by_rank.size()) >= incident.replicas && !incident.whole) incident.whole = time;
    }
    generation_ = generation;
    by_rank_ = by_rank;
    is_training_ = true;
    forget_settled();
  }

  // A survivor was a member of the generation before, and brings the state of the training.
  int count_survivors(const std::vector<int>& by_rank, int failed) const {
    return static_cast<int>(std::count_if(by_rank.begin(), by_rank.end(), [&](int member) {
      return member != failed && std::find(by_rank_.begin(), by_rank_.end(), member) != by_rank_.end();
    }));
  }

  // A survivor's state repeats no step. Without one, and without a state that was read, all steps are repeated.
  void note_progress(double time) {
    incidents_at_progress_ = report_.incidents.size();
    for (const std::size_t index : open_) {
      Incident& incident = report_.incidents[index];
      if (!incident.opened || incident.progressed) continue;
      incident.progressed = time;
      if (incident.repeated) continue;
      incident.repeated = incident.survivors > 0 ? 0 : std::max<std::int64_t>(0, incident.step);
    }
    forget_settled();
  }

  // An incident is complete when training has gone on and the run has as many replicas as before.
  void forget_settled() {
    std::erase_if(open_, [this](std::size_t index) {
      return report_.incidents[index].progressed.has_value() && report_.incidents[index].whole.has_value();
    });
  }

  // A failure before the last progress did not end the run.
  void note_end(const std::pair<int, std::string>& finish, double time) {
    if (report_.starts.empty()) return;
    RunReport::Start& start = report_.starts.back();
    start.ended = time;
    start.exit_code = finish.first;
    start.sentence = finish.second;
    if (finish.first == kExitFinished || finish.first == kExitStopped) return;
    if (report_.incidents.size() > incidents_at_progress_) report_.incidents.back().ended_run = true;
  }

  RunReport report_;
  std::size_t incidents_at_progress_ =
      0;  // how many there were at the last progress; later ones may have ended the run
  int generation_ = -1;
  std::vector<int> by_rank_;                     // members of the generation
  bool is_training_ = false;                     // the generation has opened, and is not cancelled
  int generations_before_ = 0;                   // of earlier watchdogs
  std::vector<std::size_t> open_;                // incidents that are not complete yet
  std::map<int, std::size_t> last_incident_of_;  // by member, until its exit
  std::deque<Restart> restarts_;                 // those whose decision was not read yet
  std::map<int, int> pids_;                      // by member
  SlowStory slow_story_;
  DeviceSlotStory slot_story_;
  HostStory host_story_;
};

Json to_json(const std::optional<RunReport::Origin>& origin) {
  if (!origin) return nullptr;
  return {{"path", origin->path}, {"step", origin->step}};
}

// The exit code is null while the run is live. A 0 would be taken for success.
Json to_json(const RunReport::Start& start) {
  Json body = {{"time", start.time},
               {"pid", start.pid},
               {"replicas", start.replicas},
               {"resumed", to_json(start.resumed)},
               {"ended", or_null(start.ended)},
               {"exit_code", start.ended ? Json(start.exit_code) : Json(nullptr)},
               {"sentence", start.sentence}};
  if (start.hosts > 1) body["hosts"] = start.hosts;
  return body;
}

Json to_json(const Incident& incident) {
  Json body = {{"cause", incident.cause},
               {"evidence", incident.evidence},
               {"frames", incident.frames},
               {"member", incident.member},
               {"rank", incident.rank},
               {"pid", incident.pid},
               {"generation", incident.generation},
               {"step", incident.step},
               {"replicas", incident.replicas},
               {"noticed", incident.noticed},
               {"cancelled", or_null(incident.cancelled)},
               {"opened", or_null(incident.opened)},
               {"progressed", or_null(incident.progressed)},
               {"whole", or_null(incident.whole)},
               {"next_generation", incident.next_generation},
               {"next_replicas", incident.next_replicas},
               {"survivors", incident.survivors},
               {"resumed", to_json(incident.resumed)},
               {"repeated", or_null(incident.repeated)},
               {"ended_run", incident.ended_run}};
  if (incident.host >= 0) body["host"] = incident.host;
  return body;
}

Json to_json(const RunReport::Remark& remark) {
  return {{"time", remark.time}, {"sentence", remark.sentence}};
}

template <class Part>
Json list_of(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts) list.push_back(to_json(part));
  return list;
}

}  // namespace

RunReport read_run_report(const std::string& journal_path) {
  // That of a host that is not the first, whose run directory is its own.
  const std::filesystem::path hosts = std::filesystem::path(journal_path).parent_path() / "hosts";
  std::error_code ignored;
  if (!std::filesystem::exists(journal_path, ignored) && std::filesystem::exists(hosts, ignored)) {
    throw Error(ErrorCode::not_found,
                fmt::format("there is no journal {}; a run over several hosts has it on its first host, so ask there",
                            journal_path));
  }
  // A check before the stream opens the file: on a FIFO it would wait for a writer without end.
  open_regular_file(journal_path, O_RDONLY, fmt::format("read the journal {}", journal_path));
  std::ifstream file(journal_path);
  if (!file) throw system_error(errno, fmt::format("cannot read the journal {}", journal_path));
  Reader reader;
  for (std::string line; std::getline(file, line);) reader.take(line);
  return reader.report();
}

std::string to_json(const RunReport& report) {
  Json body = {{"starts", list_of(report.starts)},
               {"incidents", list_of(report.incidents)},
               {"remarks", list_of(report.remarks)},
               {"slow_replicas", list_of(report.slow_replicas)},
               {"rests", list_of(report.rests)},
               {"savepoints",
                {{"durable", report.savepoints.durable},
                 {"skipped", report.savepoints.skipped},
                 {"newest_path", report.savepoints.newest_path},
                 {"newest_step", report.savepoints.newest_step},
                 {"problems", report.savepoints.problems}}},
               {"furthest_step", report.furthest_step},
               {"generations", report.generations},
               {"skipped_lines", report.skipped_lines}};
  if (!report.absences.empty()) body["absences"] = list_of(report.absences);
  // Texts of a program may not be UTF-8. The report is written all the same.
  return body.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::recovery
