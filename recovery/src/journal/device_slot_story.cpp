// A rest, its trial and its end are three decisions. They are joined by device slot, because a slot has one rest at
// a time.
#include "journal/device_slot_story.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "decide/device_slot_changes.h"
#include "journal/journal.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;
using Kind = DeviceSlotChange::Kind;
using Rest = RunReport::Rest;

Rest rest_of(double time, const DeviceSlotChange& change, int incident) {
  return {.device_slot = change.device_slot,
          .began = time,
          .seconds = std::chrono::duration<double>(change.rest).count(),
          .is_of_a_trial = change.is_of_a_trial,
          .failures = change.failures,
          .times_left_out = change.times_left_out,
          .incident = incident,
          .device = change.device};
}

}  // namespace

void DeviceSlotStory::take_decision(double time, const Json& line, int incident) {
  const auto changes = line.find("places");
  // Most decisions change no device slot, and their lines have no such list.
  if (changes == line.end()) return;
  for (const Json& entry : *changes) {
    const DeviceSlotChange change = device_slot_change_from_json(entry);
    if (change.kind == Kind::left_out) {
      // After a trial that fails the slot rests again. The rest before it then has no end of its own.
      open_[change.device_slot] = rests_.size();
      rests_.push_back(rest_of(time, change, incident));
      continue;
    }
    const auto open = open_.find(change.device_slot);
    // The journal may begin in the middle of a rest.
    if (open == open_.end()) continue;
    Rest& rest = rests_[open->second];
    (change.kind == Kind::tried ? rest.tried : rest.used_again) = time;
    (change.kind == Kind::tried ? rest.tried_by : rest.shown_well_by) = change.member;
  }
}

// Null stands for what has not happened. A 0 would be taken for process 0, or for a time.
Json to_json(const Rest& rest) {
  return {{"place", rest.device_slot},
          {"began", rest.began},
          {"seconds", rest.seconds},
          {"is_of_a_trial", rest.is_of_a_trial},
          {"failures", rest.failures},
          {"times_left_out", rest.times_left_out},
          {"incident", number_or_null(rest.incident)},
          {"tried", or_null(rest.tried)},
          {"tried_by", number_or_null(rest.tried_by)},
          {"used_again", or_null(rest.used_again)},
          {"shown_well_by", number_or_null(rest.shown_well_by)},
          {"device", rest.device.empty() ? Json(nullptr) : Json(rest.device)}};
}

}  // namespace holdfast::recovery
