// The same findings three times: as a table for people, as JSON for programs, and as JUnit XML for build servers. Names
// and sentences may quote what a program printed, so each form escapes them in its own way. See
// docs/decisions/testing.md.

#include "chaos_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "console.h"
#include "holdfast/base/shown_text.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using Json = nlohmann::json;
using resilience::CaseResult;
using resilience::RunResult;
using resilience::WatchdogSize;

// Rows of a table should fit on a screen. The findings have the whole sentence.
constexpr std::size_t kMostOfASentence = 100;

std::string seconds_of(const RunResult& run) {
  return fmt::format("{:.1f}", static_cast<double>(run.wall_time.count()) / 1000);
}

// A documented stop or limit counts as survival: docs/faults.md allows it.
bool has_failed(const ChaosCase& entry) {
  return !has_survived(entry.result.verdict);
}

// The program survived, but some of its faults never struck.
bool shows_nothing(const ChaosReport& report, const ChaosCase& entry) {
  return !has_failed(entry) && entry.missed > 0 && !report.allows_missed;
}

std::size_t count_of_failed(const ChaosReport& report) {
  return static_cast<std::size_t>(std::count_if(report.cases.begin(), report.cases.end(), has_failed));
}

std::size_t count_that_show_nothing(const ChaosReport& report) {
  return static_cast<std::size_t>(std::count_if(report.cases.begin(), report.cases.end(),
                                                [&](const ChaosCase& entry) { return shows_nothing(report, entry); }));
}

// Empty when the run does not say which faults struck.
std::string missed_faults(const ChaosCase& entry) {
  const std::vector<int>& struck = entry.result.run.struck;
  const std::vector<std::string>& faults = entry.result.test.faults;
  std::vector<std::string> missed;
  for (std::size_t i = 0; i < faults.size() && entry.missed > 0; ++i) {
    if (!std::binary_search(struck.begin(), struck.end(), static_cast<int>(i))) missed.push_back(faults[i]);
  }
  return missed.empty() || struck.empty() ? "" : fmt::format("\n  missed: {}", joined(missed, "; "));
}

// Whether all faults struck is shown for every case, because a missed fault proves nothing.
std::string struck(const CaseResult& result) {
  return fmt::format("{}/{}", result.run.faults_struck, result.test.faults.size());
}

Json to_json(const std::optional<resilience::FinishedFit>& fit) {
  // null if no fit() finished.
  return fit ? Json{{"step", fit->step}, {"weights_digest", fit->weights_digest}} : Json();
}

// Numbers of the run are in each case, so that a script needs no other file.
Json to_json(const RunResult& run) {
  Json lost = Json::array();
  for (const resilience::LostReplica& replica : run.lost) {
    lost.push_back(
        {{"generation", replica.generation}, {"rank", replica.rank}, {"step", replica.step}, {"cause", replica.cause}});
  }
  return {{"exit_code", run.exit_code},
          {"sentence", run.sentence},
          {"starts", run.starts},
          {"replicas", run.replicas},
          {"seconds", static_cast<double>(run.wall_time.count()) / 1000},
          {"last_fit", to_json(run.last_fit)},
          {"lost", lost},
          {"corruptions", run.corruptions.size()},
          {"roll_backs", run.roll_backs},
          {"faults_struck", run.faults_struck},
          {"processes_left", run.processes_left}};
}

Json to_json(const WatchdogSize& size) {
  return {{"resident_kilobytes", size.resident_kilobytes},
          {"descriptors", size.descriptors},
          {"threads", size.threads},
          {"zombies", size.zombies}};
}

Json to_json(const ChaosReport& report) {
  Json cases = Json::array();
  for (const ChaosCase& entry : report.cases) {
    const CaseResult& result = entry.result;
    Json line = to_json(result.run);
    line["name"] = result.test.name;
    line["faults"] = result.test.faults;
    line["verdict"] = to_string(result.verdict);
    line["survived"] = !has_failed(entry);
    line["missed"] = entry.missed;
    line["what"] = result.sentence;
    line["replay"] = entry.replay;
    cases.push_back(std::move(line));
  }
  return {{"undisturbed", to_json(report.undisturbed)}, {"cases", cases}};
}

// A program's output may contain any byte, so invalid UTF-8 is replaced.
std::string dump(const Json& object) {
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// XML 1.0 cannot hold most control characters, not even escaped, nor bytes that are not UTF-8. So shown_text() writes
// them as "\x1b" first. A build server would refuse the whole file.
std::string escaped(std::string_view text) {
  static const std::map<char, std::string> kEscapes = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
  std::string shown = shown_text(text, text.npos);
  // Two characters of UTF-8 that XML leaves out: U+FFFE and U+FFFF.
  for (const char* const character : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (std::size_t at = 0; (at = shown.find(character, at)) != shown.npos;) shown.replace(at, 3, "?");
  }
  std::string result;
  for (const char c : shown) {
    const auto escape = kEscapes.find(c);
    result += escape == kEscapes.end() ? std::string(1, c) : escape->second;
  }
  return result;
}

}  // namespace

int exit_code(const ChaosReport& report) {
  // A failure outranks a fault that never struck.
  if (count_of_failed(report) > 0) return kDamaged;
  return count_that_show_nothing(report) > 0 ? kNotDone : kDone;
}

void write_table(const ChaosReport& report, std::ostream& out) {
  Table table({"case", ">struck", ">lost", ">seconds", "verdict", "what was seen"});
  for (const ChaosCase& entry : report.cases) {
    const CaseResult& result = entry.result;
    table.add({result.test.name, struck(result), std::to_string(result.run.lost.size()), seconds_of(result.run),
               std::string(to_string(result.verdict)), shortened(result.sentence, kMostOfASentence)});
  }
  table.write(out);
  // Verdicts that did not occur are left out.
  std::map<std::string_view, std::uint64_t> counts;
  for (const ChaosCase& entry : report.cases) ++counts[to_string(entry.result.verdict)];
  out << "\n" << describe_count(report.cases.size(), "case");
  for (const auto& [verdict, count] : counts) out << ", " << count << " " << verdict;
  out << "\n";
}

void write_findings(const ChaosReport& report, std::ostream& out) {
  for (const ChaosCase& entry : report.cases) {
    const CaseResult& result = entry.result;
    // The table shortens what was seen, so each finding has the whole sentence.
    if (!has_failed(entry) && entry.missed == 0) continue;
    out << "\n"
        << (has_failed(entry) ? "FINDING: " : "not every fault struck: ") << result.test.name << ": "
        << to_string(result.verdict) << "\n  faults: " << joined(result.test.faults, "; ") << missed_faults(entry)
        << "\n  seen:   " << printable(result.sentence) << "\n  again:  " << entry.replay << "\n";
  }
  const std::size_t count = count_that_show_nothing(report);
  if (count == 0) return;
  out << "\n"
      << describe_count(count, "case") << (count == 1 ? " shows" : " show")
      << " nothing about the faults that never struck; check that the run has this rank, step and phase, or accept "
         "such "
         "runs with --allow-missed\n";
}

std::string to_json_text(const ChaosReport& report) {
  return dump(to_json(report));
}

// The form that most build servers read: a suite with one test case for each case.
std::string to_junit_text(const ChaosReport& report) {
  std::ostringstream out;
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"holdfast chaos\" tests=\""
      << report.cases.size() << "\" failures=\"" << count_of_failed(report) << "\" errors=\""
      << count_that_show_nothing(report) << "\">\n";
  for (const ChaosCase& entry : report.cases) {
    const CaseResult& result = entry.result;
    out << "<testcase classname=\"chaos\" name=\"" << escaped(result.test.name) << "\" time=\""
        << seconds_of(result.run) << "\">";
    // In JUnit an error is a test that could not be done, and a failure is a claim that is wrong.
    if (shows_nothing(report, entry)) {
      out << "<error message=\"not every fault struck: " << struck(result) << "\">"
          << escaped(joined(result.test.faults, "; ")) << " again: " << escaped(entry.replay) << "</error>";
    }
    if (has_failed(entry)) {
      out << "<failure message=\"" << escaped(to_string(result.verdict)) << ": " << escaped(result.sentence) << "\">"
          << escaped(joined(result.test.faults, "; ")) << " again: " << escaped(entry.replay) << "</failure>";
    }
    out << "</testcase>\n";
  }
  out << "</testsuite>\n</testsuites>\n";
  return out.str();
}

// A watchdog that leaks shows here: its last size is well above the first.
void write_soak(const resilience::SoakResult& soak, std::ostream& out) {
  out << soak.kills << " replicas killed in " << seconds_of(soak.run)
      << " s; failures that the watchdog reported: " << soak.run.lost.size() << "\n\n";
  Table table({"the watchdog's", ">first", ">last", ">most"});
  const auto add = [&](const char* name, auto WatchdogSize::*member) {
    table.add({name, std::to_string(soak.first.*member), std::to_string(soak.last.*member),
               std::to_string(soak.most.*member)});
  };
  add("memory, KiB", &WatchdogSize::resident_kilobytes);
  add("descriptors", &WatchdogSize::descriptors);
  add("threads", &WatchdogSize::threads);
  add("zombies", &WatchdogSize::zombies);
  table.write(out);
  out << "\n";
}

std::string to_json_text(const resilience::SoakResult& soak, const ChaosReport& report) {
  Json object = to_json(report);
  object["soak"] = {{"kills", soak.kills},
                    {"first", to_json(soak.first)},
                    {"last", to_json(soak.last)},
                    {"most", to_json(soak.most)}};
  return dump(object);
}

}  // namespace holdfast::cli
