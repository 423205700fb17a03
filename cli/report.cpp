// Tells the story of a run. The library joins the lines of the journal into incidents; here they become text, in the
// order of their times. The report needs no watchdog: it is wanted most when the watchdog is gone.
// docs/decisions/journal.md

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "holdfast/base/error.h"
#include "live_run.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using recovery::RunReport;

struct ReportOptions {
  std::string run;
  bool as_json = false;
};

// Short, because the report only needs to know whether a watchdog answers.
constexpr std::chrono::seconds kLookPatience(2);
// Replicas that fail within this time, and for the same cause, are shown as one loss.
constexpr double kOneMoment = 1;  // s

// Local time and its offset from UTC, as in the log.
std::string describe_time(double unix_seconds) {
  const double whole = std::floor(unix_seconds);
  const auto seconds = static_cast<std::time_t>(whole);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  const long minutes = std::labs(parts.tm_gmtoff) / 60;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03} {}{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     static_cast<int>((unix_seconds - whole) * 1000), parts.tm_gmtoff < 0 ? '-' : '+', minutes / 60,
                     minutes % 60);
}

// Recovery takes milliseconds, and an outage hours, so the unit changes with the size.
std::string describe_duration(double seconds) {
  // The journal records the time of day, to be comparable with other logs. So the clock may be set back between lines.
  if (seconds < 0) return "an unknown time (the clock was set back)";
  return seconds < 10 ? fmt::format("{:.1f} ms", seconds * 1000) : fmt::format("{:.1f} s", seconds);
}

void tell_start(std::ostream& out, const RunReport::Start& start, bool is_last, bool is_live) {
  out << describe_time(start.time) << "  started with " << start.replicas << " replicas";
  if (start.hosts > 1) out << " on " << start.hosts << " hosts";
  out << ", watchdog " << start.pid;
  if (start.resumed) out << ", from step " << start.resumed->step << " (" << printable(start.resumed->path) << ")";
  out << "\n";
  // A watchdog that was killed wrote no end. Without an end the last start may also be live.
  if (start.ended) {
    out << describe_time(*start.ended) << "  ended after " << describe_duration(*start.ended - start.time)
        << " with exit code " << start.exit_code << ": " << printable(start.sentence) << "\n";
  } else if (is_last && is_live) {
    out << "the run is live\n";
  } else if (is_last && start.hosts > 1) {
    // Its socket is on the first host, and this may be another one.
    out << "the watchdog wrote no end: it is live on the first host, or was killed, or that host stopped\n";
  } else {
    out << "the watchdog wrote no end: it was killed, or the machine stopped\n";
  }
}

// The process is named too: several processes have the same rank in the course of a run.
std::string name_of(const RunReport::Incident& incident) {
  const std::string host = incident.host < 0 ? "" : fmt::format(" on host {}", incident.host);
  const std::string process = fmt::format(" (process {}, pid {}{})", incident.member, incident.pid, host);
  if (incident.rank < 0) return fmt::format("a process that was not training{}", process);
  const std::string name = fmt::format("replica {}{} of generation {}", incident.rank, process, incident.generation);
  return incident.step < 0 ? name : fmt::format("{} in step {}", name, incident.step);
}

// What the failure cost: steps that were computed again, and the time without a replica.
std::string describe_loss(const RunReport::Incident& incident) {
  if (incident.ended_run) return "this failure ended the run";
  if (incident.rank < 0)
    return incident.replicas > 0 ? "nothing: the others went on" : "nothing: no replica was training";
  // The cost is known only after the run has passed the step that it had reached before.
  if (!incident.repeated) return "unknown: the journal shows no progress after it";
  std::string loss = *incident.repeated == 0
                         ? "no step"
                         : fmt::format("{}, computed again", describe_count(*incident.repeated, "step"));
  if (incident.resumed) {
    loss += fmt::format(", since no replica kept its state: it came from {} of step {}",
                        printable(incident.resumed->path), incident.resumed->step);
  } else if (incident.survivors > 0) {
    loss += fmt::format(": {} kept the state", describe_count(incident.survivors, "survivor"));
  } else {
    loss += ", since no replica kept its state and there was no savepoint";
  }
  if (incident.next_replicas >= incident.replicas) return loss;
  loss += "; a replica was missing ";
  return loss + (incident.whole ? fmt::format("for {}", describe_duration(*incident.whole - incident.noticed))
                                : "until the end");
}

// All times count from the moment at which the watchdog noticed the failure. The failure itself may
// be older, as with a hang.
void tell_times(std::ostream& out, const RunReport::Incident& incident) {
  const auto after = [&](double moment) { return describe_duration(moment - incident.noticed); };
  if (incident.cancelled) out << "    the others stopped waiting " << after(*incident.cancelled) << " later\n";
  if (incident.opened) {
    out << "    generation " << incident.next_generation << " opened with " << incident.next_replicas << " of "
        << incident.replicas << " replicas " << after(*incident.opened) << " later\n";
  }
  if (incident.progressed) {
    out << "    the run passed its furthest step " << after(*incident.progressed) << " later\n";
  }
}

void tell_failure(std::ostream& out, const RunReport::Incident& incident) {
  out << "  " << name_of(incident) << "\n    cause: " << printable(incident.cause) << "\n";
  for (const std::string& evidence : incident.evidence) out << "    seen: " << printable(evidence) << "\n";
  for (std::size_t i = 0; i < incident.frames.size(); ++i) {
    out << (i == 0 ? "    in: " : "        ") << "#" << i << " " << printable(incident.frames[i]) << "\n";
  }
}

// Replicas that were lost together. What happened next is the same for all of them.
bool are_of_one_moment(const RunReport::Incident& one, const RunReport::Incident& other) {
  return one.rank >= 0 && other.rank >= 0 && one.generation == other.generation && one.cause == other.cause &&
         one.opened && one.opened == other.opened && std::abs(one.noticed - other.noticed) < kOneMoment;
}

// Writes `first` and all that were lost together with it. Returns the index of the first one after these.
std::size_t tell_incidents(std::ostream& out, const std::vector<RunReport::Incident>& incidents, std::size_t first) {
  out << first + 1 << ". " << describe_time(incidents[first].noticed);
  tell_failure(out, incidents[first]);
  std::size_t next = first + 1;
  for (; next < incidents.size() && are_of_one_moment(incidents[first], incidents[next]); ++next) {
    out << next + 1 << ". " << describe_duration(std::max(0.0, incidents[next].noticed - incidents[first].noticed))
        << " later";
    tell_failure(out, incidents[next]);
  }
  tell_times(out, incidents[first]);
  out << "    lost: " << describe_loss(incidents[first]) << "\n";
  return next;
}

std::string describe_assignment(const RunReport::Assignment& assignment) {
  const std::vector<int>& counts = assignment.shards;
  const std::string shares = counts.empty() ? "evenly" : fmt::format("{}", fmt::join(counts, ", "));
  const std::string text = fmt::format("shards were assigned {} with generation {}", shares, assignment.generation);
  return assignment.why.empty() ? text : fmt::format("{}: {}", text, printable(assignment.why));
}

std::string describe_end(const RunReport::SlowReplica& replica) {
  using Ending = RunReport::SlowReplica::Ending;
  if (replica.ending == Ending::quick_again) return "it was no longer slow";
  if (replica.ending != Ending::replaced) return "its process ended";
  if (replica.replaced_by < 0) return "it was ended, and no process replaced it at once";
  return fmt::format("it was ended, and process {} replaced it", replica.replaced_by);
}

// The events of a slow replica, in the order of their times.
// Assignments and refusals are kept apart in the report, and people read them as one story.
std::vector<RunReport::Remark> events_of(const RunReport::SlowReplica& replica) {
  std::vector<RunReport::Remark> events;
  for (const RunReport::Assignment& assignment : replica.assignments)
    events.push_back({assignment.time, describe_assignment(assignment)});
  for (const RunReport::Remark& remark : replica.left_alone) {
    events.push_back({remark.time, fmt::format("it was not replaced: {}", printable(remark.sentence))});
  }
  if (replica.ended) events.push_back({*replica.ended, describe_end(replica)});
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return events;
}

void tell_slow_replica(std::ostream& out, const RunReport::SlowReplica& replica) {
  out << describe_time(replica.noticed) << "  replica " << replica.rank << " (process " << replica.member;
  if (replica.device_slot >= 0) out << ", device slot " << replica.device_slot;
  out << ") of generation " << replica.generation << " was slow, since step " << replica.since_step << "\n"
      << "    it computed " << describe_number(std::round(replica.score * 100) / 100) << " times as long as the others";
  if (replica.milliseconds_per_round) {
    out << ", " << describe_duration(*replica.milliseconds_per_round / 1000) << " for a round of shards";
  }
  out << "\n";
  const std::vector<RunReport::Remark> events = events_of(replica);
  for (const RunReport::Remark& event : events) {
    out << "    " << describe_duration(event.time - replica.noticed) << " later " << event.sentence << "\n";
  }
  if (replica.assignments.empty() && replica.ending != RunReport::SlowReplica::Ending::replaced) {
    out << "    its shards stayed the same\n";
  }
  if (!replica.ended) out << "    it stayed slow until the end\n";
}

std::string describe_reason(const RunReport::Rest& rest) {
  if (!rest.device.empty()) return printable(rest.device);
  if (rest.is_of_a_trial) return "the process that tried it failed";
  if (rest.failures == 1) return "a process failed on it";
  return fmt::format("{} processes failed on it, one after the other", rest.failures);
}

// Moments are given relative to the beginning, as for incidents, so that durations need no arithmetic.
void tell_rest(std::ostream& out, const RunReport::Rest& rest) {
  const auto after = [&](double moment) { return describe_duration(moment - rest.began); };
  out << describe_time(rest.began) << "  device slot " << rest.device_slot << " was left out for "
      << describe_duration(rest.seconds) << ": " << describe_reason(rest);
  if (rest.incident >= 0) out << "; see incident " << rest.incident + 1;
  out << "\n";
  if (rest.tried) {
    out << "    " << after(*rest.tried) << " later process " << rest.tried_by << " was started on it to try it\n";
  }
  if (rest.used_again) {
    out << "    " << after(*rest.used_again) << " later it was used again: process " << rest.shown_well_by
        << " had trained a step on it\n";
  }
}

// Replicas that were lost with the host are incidents of their own.
void tell_absence(std::ostream& out, const RunReport::Absence& absence) {
  out << describe_time(absence.began) << "  host " << absence.host;
  if (absence.was_asked) {
    out << " was asked to leave the run\n";
  } else {
    out << " was lost: " << printable(absence.why) << "\n";
  }
  if (absence.returned) {
    out << "    " << describe_duration(*absence.returned - absence.began) << " later it was part of the run again\n";
  } else {
    out << "    it has not come back\n";
  }
}

void tell_savepoints(std::ostream& out, const RunReport::Savepoints& savepoints) {
  out << describe_count(savepoints.durable, "savepoint") << " durable";
  if (savepoints.durable > 0) {
    out << ", the newest " << printable(savepoints.newest_path) << " of step " << savepoints.newest_step;
  }
  if (savepoints.skipped > 0) out << "; " << savepoints.skipped << " skipped";
  out << "\n";
  if (savepoints.problems.empty()) return;
  // The library keeps only the first problems, so a full list may not be complete.
  const bool is_cut = savepoints.problems.size() == RunReport::kMostProblems;
  out << (is_cut ? "the first " : "") << describe_count(savepoints.problems.size(), "problem") << " with savepoints:\n";
  for (const std::string& problem : savepoints.problems) out << "    " << printable(problem) << "\n";
}

// The journal alone cannot tell a live run from one whose watchdog was killed.
bool is_live(const std::string& run) {
  try {
    ask(run, {{"command", "status"}}, kLookPatience);
    return true;
  } catch (const Error& error) {
    // A watchdog that does not answer, or answers in a way of another version, is live too: it holds its socket.
    return error.code() == ErrorCode::deadline_exceeded || error.code() == ErrorCode::unsupported;
  }
}

// The events of the run, in the order of their times.
void tell_story(std::ostream& out, const RunReport& report) {
  std::vector<RunReport::Remark> parts = report.remarks;
  for (RunReport::Remark& remark : parts) {
    remark.sentence = fmt::format("{}  {}\n", describe_time(remark.time), printable(remark.sentence));
  }
  const auto add = [&parts](double time, const auto& tell) {
    std::ostringstream text;
    tell(text);
    parts.push_back({time, text.str()});
  };
  for (const auto& replica : report.slow_replicas) {
    add(replica.noticed, [&](std::ostream& text) { tell_slow_replica(text, replica); });
  }
  for (const auto& rest : report.rests) add(rest.began, [&](std::ostream& text) { tell_rest(text, rest); });
  // Before the incidents, whose causes they are.
  for (const auto& absence : report.absences) {
    add(absence.began, [&](std::ostream& text) { tell_absence(text, absence); });
  }
  for (std::size_t i = 0; i < report.incidents.size();) {
    const double time = report.incidents[i].noticed;
    add(time, [&](std::ostream& text) { i = tell_incidents(text, report.incidents, i); });
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  for (const RunReport::Remark& part : parts) out << part.sentence;
}

// Returns the exit code. Throws Error{not_found} when there is no journal.
int report(const ReportOptions& options, Console& console) {
  const RunReport report = recovery::read_run_report(options.run + "/journal.jsonl");
  console.out << (options.as_json ? recovery::to_json(report) + "\n" : describe_report(report, is_live(options.run)));
  return kDone;
}

}  // namespace

std::string describe_report(const RunReport& report, bool is_live) {
  std::ostringstream out;
  for (std::size_t i = 0; i < report.starts.size(); ++i) {
    tell_start(out, report.starts[i], i + 1 == report.starts.size(), is_live);
  }
  const bool is_known = report.furthest_step >= 0;
  out << "furthest step " << (is_known ? std::to_string(report.furthest_step) : "unknown") << ", "
      << describe_count(report.generations, "generation") << ", " << describe_count(report.incidents.size(), "incident")
      << "\n";
  tell_savepoints(out, report.savepoints);
  tell_story(out, report);
  if (report.skipped_lines > 0) {
    out << describe_count(report.skipped_lines, "line") << " of the journal could not be read\n";
  }
  return out.str();
}

void add_report(Subcommands& commands) {
  commands.add<ReportOptions>(
      "report", "Show from its journal what happened in a run, live or not: failures, their cost, and what was lost",
      [](CLI::App& command, ReportOptions& options) {
        command.add_option("RUN", options.run, kRunDirectory)->required();
        command.add_flag("--json", options.as_json, "Print JSON");
      },
      [&commands](const ReportOptions& options) { return report(options, commands.console); });
}

}  // namespace holdfast::cli
