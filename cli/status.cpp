// Shows a live run. The watchdog is asked through the socket in its folder: a file that it wrote now and then would be
// old when it is read. docs/decisions/live-runs.md

#include "status.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "holdfast/base/error.h"
#include "live_run.h"
#include "subcommands.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using Json = nlohmann::json;

struct StatusOptions {
  std::string run;
  bool as_json = false;
  bool once = false;
  bool watch = false;  // neither: watch on a terminal, else print once
};

constexpr std::chrono::seconds kPeriod(1);
// Moves the cursor to the upper left corner and clears the screen, on every terminal since the VT100.
constexpr const char* kHome = "\x1b[H\x1b[J";

std::string with_digits(double value, int digits) {
  return fmt::format("{:.{}f}", value, digits);
}

// -1 is that of a process that has no state yet.
std::string describe_step(const Json& step) {
  return step.get<std::int64_t>() < 0 ? "-" : std::to_string(step.get<std::int64_t>());
}

bool has_shards(const Json& member) {
  return member.contains("shards") && member.at("shards").is_number_integer();
}

// Counts of shards that differ by one are as even as possible.
bool are_shards_uneven(const Json& members) {
  std::vector<std::int64_t> counts;
  for (const Json& member : members) {
    if (has_shards(member)) counts.push_back(member.at("shards").get<std::int64_t>());
  }
  if (counts.empty()) return false;
  const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end());
  return *most - *fewest > 1;
}

bool has_device(const Json& place) {
  return place.contains("device") && place.at("device").is_string();
}

// The name of the device, or the number of the device slot if the device has no name.
std::string describe_place(const Json& place) {
  if (has_device(place)) return printable(place.at("device").get<std::string>());
  return std::to_string(place.at("place").get<int>());
}

// A process of another host has memory there, which nobody has looked at.
std::string describe_memory(const Json& bytes) {
  return bytes.is_null() ? "-" : fmt::format("{} MiB", with_digits(bytes.get<double>() / (1024 * 1024), 0));
}

void add_row(Table& table, const Json& member, bool with_shards) {
  const auto number = [&](const char* name) { return std::to_string(member.at(name).get<std::int64_t>()); };
  std::vector<std::string> row{member.at("rank").is_null() ? "-" : number("rank"),
                               number("member"),
                               describe_place(member),
                               number("pid"),
                               member.at("stage").get<std::string>(),
                               member.at("phase").get<std::string>(),
                               describe_step(member.at("step")),
                               fmt::format("{} s", with_digits(member.at("seconds_since_progress").get<double>(), 1)),
                               with_digits(member.at("samples_per_second").get<double>(), 1),
                               describe_memory(member.at("resident_bytes")),
                               number("restarts")};
  if (with_shards) row.push_back(has_shards(member) ? number("shards") : "-");
  // As where the header gets its column.
  if (member.contains("host")) row.insert(row.begin() + 1, number("host"));
  table.add(row);
}

// What a host of several does, in words.
std::string describe_host(const Json& host) {
  const auto stage = host.at("stage").get<std::string>();
  if (stage == "awaited") return "has not joined yet";
  if (stage == "there") return "part of the run";
  const std::string since = fmt::format("{} s", with_digits(host.at("seconds_away").get<double>(), 1));
  if (stage == "leaving") return fmt::format("is leaving, asked {} ago", since);
  if (host.at("was_asked_to_leave").get<bool>()) return fmt::format("has left, asked {} ago", since);
  return fmt::format("lost {} ago: {}", since, printable(host.at("why_away").get<std::string>()));
}

void tell_hosts(std::ostream& out, const Json& hosts) {
  Table table({">HOST", "ADDRESS", "STATE"});
  for (const Json& host : hosts) {
    const std::string address = host.value("address", "");
    table.add(
        {std::to_string(host.at("host").get<int>()), address.empty() ? "-" : printable(address), describe_host(host)});
  }
  table.write(out);
}

void tell_rest(std::ostream& out, const Json& rest) {
  // A device that was left out is either in use by a process that tries it, resting, or free to be tried.
  const auto left = rest.at("seconds_left").get<double>();
  out << (has_device(rest) ? "" : "device slot ") << describe_place(rest)
      << " is left out: " << printable(rest.at("why").get<std::string>()) << "; ";
  if (!rest.at("tried_by").is_null()) {
    out << "process " << rest.at("tried_by").get<int>() << " tries it\n";
  } else if (left > 0) {
    out << "it is tried again in " << with_digits(left, 0) << " s\n";
  } else {
    out << "it is tried again when a process is missing\n";
  }
}

void tell_device_event(std::ostream& out, const Json& event) {
  out << printable(event.at("device").get<std::string>()) << " had "
      << describe_count(event.at("count").get<std::int64_t>(), "event") << ", the last "
      << with_digits(event.at("seconds_ago").get<double>(), 0)
      << " s ago: " << printable(event.at("what").get<std::string>()) << "\n";
}

void show(const Json& status, const StatusOptions& options, bool is_drawn_over, Console& console) {
  if (options.as_json) {
    console.out << status.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
    return;
  }
  console.out << (is_drawn_over ? kHome : "") << printable(options.run) << ": " << describe_status(options.run, status)
              << std::flush;
}

int watch(const StatusOptions& options, Console& console) {
  // A program that reads JSON gets one line after the other, and no codes for the cursor.
  const bool is_drawn_over = console.out_is_terminal && !options.as_json;
  for (bool is_first = true;; is_first = false) {
    try {
      show(ask(options.run, {{"command", "status"}}, kAnswerPatience), options, is_drawn_over, console);
    } catch (const Error& error) {
      // Later a missing socket is the usual end of a run. At the first time there was no run to watch.
      const bool has_ended = error.code() == ErrorCode::not_found || error.code() == ErrorCode::input_output;
      if (is_first || !has_ended) throw;
      // Not a failure of this command: it watches until the run ends.
      console.problems << "holdfast: the run has ended; \"holdfast report " << printable(options.run)
                       << "\" shows how\n";
      return kDone;
    }
    std::this_thread::sleep_for(kPeriod);
  }
}

// Prints the status once, or every second until the run ends. Returns the exit code. Throws Error{not_found} when no
// run is live at the first time.
int status(const StatusOptions& options, Console& console) {
  if (options.watch || (console.out_is_terminal && !options.once)) return watch(options, console);
  show(ask(options.run, {{"command", "status"}}, kAnswerPatience), options, false, console);
  return kDone;
}

std::string text_of_status(const Json& status) {
  std::ostringstream text;
  text << status.at("phase").get<std::string>() << ", generation " << status.at("generation").get<int>() << ", "
       << describe_count(status.at("target").get<std::int64_t>(), "replica") << " wanted, step "
       << describe_step(status.at("step")) << ", " << with_digits(status.at("samples_per_second").get<double>(), 1)
       << " samples/s, " << describe_count(status.at("restarts").get<std::int64_t>(), "restart")
       << (status.value("is_stop_requested", false) ? ", stopping" : "") << "\n";
  std::vector<std::string> header{">RANK", ">PROCESS", ">DEVICE",    ">PID",    "STAGE",    "PHASE",
                                  ">STEP", ">BEAT",    ">SAMPLES/S", ">MEMORY", ">RESTARTS"};
  // Shown only if shards are assigned unevenly, as when a slow replica has fewer than the others.
  const bool with_shards = are_shards_uneven(status.at("members"));
  if (with_shards) header.emplace_back(">SHARDS");
  if (status.contains("hosts")) {
    header.insert(header.begin() + 1, ">HOST");
    tell_hosts(text, status.at("hosts"));
    text << "\n";
  }
  Table table(header);
  for (const Json& member : status.at("members")) add_row(table, member, with_shards);
  table.write(text);
  // The watchdog may be of a version that does not send these.
  if (status.contains("rests")) {
    for (const Json& rest : status.at("rests")) tell_rest(text, rest);
  }
  if (status.contains("device_events")) {
    for (const Json& event : status.at("device_events")) tell_device_event(text, event);
  }
  return text.str();
}

}  // namespace

std::string describe_status(const std::string& run, const Json& status) {
  try {
    return text_of_status(status);
  } catch (const Json::exception&) {
    // A watchdog of another version may leave out what this command shows.
    refuse_answer(run, status.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

void add_status(Subcommands& commands) {
  commands.add<StatusOptions>(
      "status",
      "Show the processes of a live run. On a terminal the table is updated until the run ends, else printed once",
      [](CLI::App& command, StatusOptions& options) {
        command.add_option("RUN", options.run, kRunDirectory)->required();
        command.add_flag("--json", options.as_json, "Print JSON, one line each time");
        CLI::Option* once = command.add_flag("--once", options.once, "Print the status once, also on a terminal");
        command.add_flag("--watch", options.watch, "Print the status every second until the run ends")->excludes(once);
      },
      [&commands](const StatusOptions& options) { return status(options, commands.console); });
}

}  // namespace holdfast::cli
