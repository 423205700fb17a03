// Faults have one form, their specification, in options, environment and plan files. An error says what is allowed,
// since specifications are typed by hand. docs/decisions/testing.md

#include "holdfast/recovery/fault_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "faults/fault_kinds.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

// An hour. A larger number is more likely a mistyped one.
constexpr std::int64_t kLongestMilliseconds = 3'600'000;
constexpr double kHighestFactor = 1000;

// Keys may come in any order, so all are split off first, and then taken by their names.
// Reads one specification.
class Parser {
 public:
  Parser(std::string_view specification, int ranks) : specification_(specification), ranks_(ranks) {
    fault_.specification = std::string(specification);
  }

  Fault parse() {
    split();
    if (!has("rank")) fail("lacks rank=");
    if (!has("fault")) fail("lacks fault=");
    // The meaning of the other keys depends on the kind.
    fault_.kind = choice("fault", fault_kind_rows());
    take_place();
    take_parameters();
    fault_.phase = has("phase") ? choice("phase", fault_phase_rows()) : default_phase(fault_);
    // Only now all parts are known that have to fit each other.
    const std::string objection = objection_to(fault_);
    if (!objection.empty()) fail(objection);
    return std::move(fault_);
  }

 private:
  struct Pair {
    std::string_view key;
    std::string_view value;
  };

  void split() {
    std::string_view rest = specification_;
    while (true) {
      const std::size_t comma = rest.find(',');
      take(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }

  void take(std::string_view pair) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) fail(fmt::format("has \"{}\" where KEY=VALUE is expected", pair));
    const std::string_view key = pair.substr(0, equals);
    // One of two values would be ignored without a word.
    if (has(key)) fail(fmt::format("gives {} twice", key));
    if (!is_known(key)) {
      fail(
          fmt::format("has the unknown key \"{}\"; allowed are rank, step, fault, phase and generation, and, by the "
                      "kind of fault, duration_ms, factor, count, seed and target",
                      key));
    }
    seen_.push_back({key, pair.substr(equals + 1)});
  }

  static bool is_known(std::string_view key) {
    static constexpr std::array<std::string_view, 5> kOfAll{"rank", "step", "fault", "phase", "generation"};
    return std::find(kOfAll.begin(), kOfAll.end(), key) != kOfAll.end() || key_of(key) != kNoKeys;
  }

  static FaultKeys key_of(std::string_view name) {
    for (const FaultKeyName& row : kFaultKeyNames) {
      if (row.name == name) return row.key;
    }
    return kNoKeys;
  }

  // Where the fault strikes: rank, step and generation.
  void take_place() {
    constexpr int kHighest = std::numeric_limits<int>::max();
    fault_.rank = static_cast<int>(number("rank", 0, ranks_ - 1));
    if (has("step")) fault_.step = number("step", 0, std::numeric_limits<std::int64_t>::max());
    if (has("generation")) fault_.generation = static_cast<int>(number("generation", 0, kHighest));
  }

  void take_parameters() {
    const FaultKindRow& row = row_of(fault_.kind);
    for (const Pair& pair : seen_) {
      // A key without effect is refused. Otherwise its author would believe that it was obeyed.
      const FaultKeys key = key_of(pair.key);
      if (key != kNoKeys && (row.keys & key) == 0) {
        fail(fmt::format("gives {}=, which fault={} does not take", pair.key, row.name));
      }
    }
    fault_.duration = row.defaults.duration;
    fault_.factor = row.defaults.factor;
    fault_.target = row.defaults.target;
    if (has("duration_ms")) fault_.duration = std::chrono::milliseconds(number("duration_ms", 1, kLongestMilliseconds));
    if (has("factor")) fault_.factor = factor();
    if (has("count")) fault_.count = number("count", 1, std::numeric_limits<std::int64_t>::max());
    if (has("seed")) {
      fault_.seed = static_cast<std::uint64_t>(number("seed", 0, std::numeric_limits<std::int64_t>::max()));
    }
    if (has("target")) fault_.target = choice("target", corruption_target_rows());
  }

  std::int64_t number(std::string_view key, std::int64_t lowest, std::int64_t highest) const {
    const std::string_view text = value_of(key);
    const auto value = whole_number<std::int64_t>(text);
    if (value && *value >= lowest && *value <= highest) return *value;
    fail(fmt::format("has {}={} where a number from {} to {} is allowed", key, text, lowest, highest));
  }

  double factor() const {
    const std::string_view text = value_of("factor");
    double value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value, std::chars_format::fixed);
    // Written so that a NaN is refused, too.
    if (error != std::errc{} || end != text.end() || !(value > 1 && value <= kHighestFactor)) {
      fail(fmt::format("has factor={} where a number above 1, up to 1000, is allowed", text));
    }
    return value;
  }

  template <typename Row>
  decltype(Row::value) choice(std::string_view key, std::span<const Row> rows) const {
    const std::string_view text = value_of(key);
    std::string allowed;
    // Other names are accepted but not offered, so that new texts use one name.
    for (const Row& row : rows) {
      if (row.name == text || (!row.other_name.empty() && row.other_name == text)) return row.value;
      allowed += (allowed.empty() ? "" : ", ") + std::string(row.name);
    }
    fail(fmt::format("has {}={}; allowed are {}", key, text, allowed));
  }

  // A specification has a few keys, so a list is searched.
  const Pair* find(std::string_view key) const {
    const auto found = std::find_if(seen_.begin(), seen_.end(), [&](const Pair& pair) { return pair.key == key; });
    return found == seen_.end() ? nullptr : &*found;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::string_view value_of(std::string_view key) const { return find(key)->value; }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("the fault \"{}\" {}", specification_, what));
  }

  std::string_view specification_;
  int ranks_;
  Fault fault_;
  std::vector<Pair> seen_;
};

// The shortest text that parses to this number.
std::string shortest(double value) {
  std::array<char, 64> text{};
  // Without an exponent, which factor() does not read.
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  HOLDFAST_ASSERT(result.ec == std::errc{});
  return {text.data(), result.ptr};
}

std::string_view trim(std::string_view text) {
  // With the carriage return, so that a plan from an editor on Windows is read as well.
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Adds the place: the error of a specification does not know where it stands in a plan.
Fault parse_entry(std::string_view specification, int ranks, const std::string& place) {
  try {
    return parse_fault(specification, ranks);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} of the plan of faults: {}", place, error.what()));
  }
}

std::vector<Fault> parse_lines(std::string_view text, int ranks) {
  std::vector<Fault> faults;
  // All lines count, also blank ones, so that the numbers are those of an editor.
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    // No specification contains a '#', so a comment may follow one on its line.
    const std::string_view specification = trim(line.substr(0, line.find('#')));
    if (!specification.empty()) {
      faults.push_back(parse_entry(specification, ranks, fmt::format("line {}", number)));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return faults;
}

[[noreturn]] void refuse_entry(const std::string& place) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} of the plan of faults is neither a string nor an object of strings and numbers, such as "
                          "{{\"rank\": 1, \"step\": 120, \"fault\": \"kill\"}}",
                          place));
}

// An object becomes the text of a specification. So both forms have one parser and one set of errors.
std::string specification_of(const nlohmann::json& entry, const std::string& place) {
  if (entry.is_string()) return entry.get<std::string>();
  if (!entry.is_object()) refuse_entry(place);
  std::string specification;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string() && !value.is_number()) refuse_entry(place);
    specification += fmt::format("{}{}=", specification.empty() ? "" : ",", key);
    specification += value.is_string() ? value.get<std::string>() : value.dump();
  }
  return specification;
}

std::vector<Fault> parse_json(std::string_view text, int ranks) {
  const nlohmann::json entries = nlohmann::json::parse(text, nullptr, false);
  if (!entries.is_array()) {
    throw Error(ErrorCode::invalid_argument, "the plan of faults begins with [ but is not a JSON list");
  }
  std::vector<Fault> faults;
  for (const nlohmann::json& entry : entries) {
    const std::string place = fmt::format("entry {}", faults.size() + 1);
    faults.push_back(parse_entry(specification_of(entry, place), ranks, place));
  }
  return faults;
}

}  // namespace

Fault parse_fault(std::string_view specification, int ranks) {
  return Parser(specification, ranks).parse();
}

std::vector<Fault> parse_fault_plan(std::string_view text, int ranks) {
  // No specification can begin with a bracket, so the first character tells the forms apart.
  return trim(text).starts_with('[') ? parse_json(text, ranks) : parse_lines(text, ranks);
}

std::string to_string(const Fault& fault) {
  const FaultKeys keys = row_of(fault.kind).keys;
  std::string text = fmt::format("rank={}", fault.rank);
  const auto add = [&](std::string_view key, std::string_view value) {
    text.append(",").append(key).append("=").append(value);
  };
  if (fault.step) add("step", std::to_string(*fault.step));
  add("phase", to_string(fault.phase));
  if (fault.generation) add("generation", std::to_string(*fault.generation));
  add("fault", to_string(fault.kind));
  // Defaults are written out, so that the text still means the same if a later version has other defaults.
  if ((keys & kDuration) != 0) add("duration_ms", std::to_string(fault.duration.count()));
  if ((keys & kFactor) != 0) add("factor", shortest(fault.factor));
  if ((keys & kCount) != 0 && fault.count) add("count", std::to_string(*fault.count));
  if ((keys & kTarget) != 0) add("target", to_string(fault.target));
  if ((keys & kSeed) != 0) add("seed", std::to_string(fault.seed));
  return text;
}

}  // namespace holdfast::recovery
