// Reads rules, and counts calls. This source is linked into libraries that replace or observe libraries of a program,
// so it uses only the standard library. See docs/decisions/testing.md.

#include "fault_rules.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace holdfast::resilience {
namespace {

// Empty parts are left out, so a rule may end with a separator.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// Rules come from the environment, where nobody sees them, so each refusal has an example.
[[noreturn]] void refuse(const std::string& part, const std::string& expected) {
  throw std::invalid_argument("\"" + part + "\" is not a part of a fault rule: " + expected +
                              "; an example is function=ncclAllGather,call=12,fault=hang");
}

std::optional<int> number(const std::string& value, int least) {
  int parsed = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (failure != std::errc() || end != value.data() + value.size() || parsed < least) return std::nullopt;
  return parsed;
}

int number(const std::string& part, const std::string& value, int least) {
  const std::optional<int> parsed = number(value, least);
  if (!parsed) refuse(part, "expected a number that is at least " + std::to_string(least));
  return *parsed;
}

// A word that is not known must not be skipped: the test would then show nothing.
LibraryFault::Kind kind(const std::string& part, const std::string& value) {
  if (value == "hang") return LibraryFault::Kind::hang;
  if (value == "fail") return LibraryFault::Kind::fail;
  if (value == "slow") return LibraryFault::Kind::slow;
  if (value == "report") return LibraryFault::Kind::report;
  if (value == "trap") return LibraryFault::Kind::trap;
  if (value == "spin") return LibraryFault::Kind::spin;
  refuse(part, "a fault is hang, fail, slow, report, trap or spin");
}

void read_part(const std::string& part, LibraryFault& fault) {
  const std::size_t at = part.find('=');
  const std::string key = part.substr(0, at);
  const std::string value = at == std::string::npos ? "" : part.substr(at + 1);
  if (key == "function") {
    fault.function = value;
  } else if (key == "rank") {
    fault.rank = number(part, value, 0);
  } else if (key == "call") {
    // One call alone. "from" sets no last call, so all later calls are meant.
    fault.first_call = number(part, value, 1);
    fault.last_call = fault.first_call;
  } else if (key == "from") {
    fault.first_call = number(part, value, 1);
  } else if (key == "fault") {
    fault.kind = kind(part, value);
  } else if (key == "result") {
    fault.result = number(part, value, 1);
  } else if (key == "milliseconds") {
    fault.delay = std::chrono::milliseconds(number(part, value, 1));
  } else if (key == "once") {
    fault.once = value;
  } else {
    refuse(part, "expected function, rank, call, from, fault, result, milliseconds or once");
  }
}

// Whether this process is the first to have the fault. All processes see the same files.
bool claim(const std::string& file) {
  if (file.empty()) return true;
  // O_EXCL lets one process alone create the file, also among several hosts that share the folder.
  const int descriptor = ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

std::vector<LibraryFault> parse(const std::string& rules) {
  std::vector<LibraryFault> faults;
  for (const std::string& rule : split(rules, ';')) {
    LibraryFault fault;
    for (const std::string& part : split(rule, ',')) read_part(part, fault);
    // Without these parts a rule would have no effect, or an effect that its author did not choose.
    if (fault.function.empty()) refuse(rule, "a rule needs a function");
    if (rule.find("fault=") == std::string::npos) refuse(rule, "a rule needs a fault");
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace

LibraryFaults::LibraryFaults(const std::string& rules) : faults_(parse(rules)) {}

std::optional<LibraryFault> LibraryFaults::enter(const std::string& function, int rank) {
  const std::lock_guard lock(mutex_);
  // Calls are counted for each rank: threads of one process may be several ranks.
  const int call = ++calls_[{function, rank}];
  // The first rule that fits decides, so a special one may stand before a general one.
  for (const LibraryFault& fault : faults_) {
    if (fault.function != "*" && fault.function != function) continue;
    if (fault.rank && *fault.rank != rank) continue;
    if (call < fault.first_call || (fault.last_call && call > *fault.last_call)) continue;
    // The file is claimed last, so that a rule that does not match leaves it to others.
    if (claim(fault.once)) return fault;
  }
  return std::nullopt;
}

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

int started_rank() {
  // RANK may come from another launcher, with one value for all replicas, so HOLDFAST_RANK comes first.
  for (const char* name : {"HOLDFAST_RANK", "RANK"}) {
    const std::string value = variable(name, "");
    if (value.empty()) continue;
    if (const std::optional<int> rank = number(value, 0)) return *rank;
    throw std::invalid_argument("the environment has " + std::string(name) + "=" + value +
                                ", which is not a rank; it must be a number from 0 on");
  }
  return -1;
}

std::string plain_name(const std::string& reported) {
  constexpr std::string_view kInternal = "__";
  std::string_view name = reported;
  if (name.starts_with(kInternal)) name.remove_prefix(kInternal.size());
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return std::string(name);
}

}  // namespace holdfast::resilience
