// Journals of earlier versions are read with these names and keys, so they stay as they are.

#include "decide/device_slot_changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using Kind = DeviceSlotChange::Kind;

// In the order of the enumerators.
constexpr std::array<std::string_view, 3> kChangeNames{"left_out", "tried", "used_again"};

}  // namespace

nlohmann::json to_json(const DeviceSlotChange& change) {
  nlohmann::json json{{"change", kChangeNames.at(static_cast<std::size_t>(change.kind))},
                      {"place", change.device_slot},
                      {"member", change.member}};
  if (change.kind != Kind::left_out) return json;
  json["is_of_a_trial"] = change.is_of_a_trial;
  json["failures"] = change.failures;
  json["times_left_out"] = change.times_left_out;
  json["rest_seconds"] = std::chrono::duration<double>(change.rest).count();
  // The key is absent where failures of processes are the reason.
  if (!change.device.empty()) json["device"] = change.device;
  return json;
}

DeviceSlotChange device_slot_change_from_json(const nlohmann::json& json) {
  const auto name = json.at("change").get<std::string>();
  const auto kind = std::find(kChangeNames.begin(), kChangeNames.end(), name);
  DeviceSlotChange change{.device_slot = json.at("place").get<int>(), .member = json.at("member").get<int>()};
  if (kind == kChangeNames.end()) {
    throw Error(ErrorCode::invalid_file, fmt::format("\"{}\" is not a change of a device slot", name));
  }
  change.kind = static_cast<Kind>(kind - kChangeNames.begin());
  // Only this kind has the rest of the keys, and needs all but the name of the device.
  if (change.kind != Kind::left_out) return change;
  change.is_of_a_trial = json.at("is_of_a_trial").get<bool>();
  change.failures = json.at("failures").get<int>();
  change.times_left_out = json.at("times_left_out").get<int>();
  change.device = json.value("device", "");
  // Rounded, because the product of a decimal fraction and 1000 may lie just below the whole number.
  change.rest = std::chrono::milliseconds(std::llround(json.at("rest_seconds").get<double>() * 1000));
  return change;
}

}  // namespace holdfast::recovery
