#pragma once

// What happens to the device slots on which processes run. The journal stores each change as JSON, with the key "place"
// for the slot; `holdfast report` reads it back.

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::recovery {

struct DeviceSlotChange {
  enum class Kind {
    left_out,    // for `rest`, after `member` failed there or the driver reported an error of the device
    tried,       // `member` was started there, after the rest or before its end
    used_again,  // `member` has trained a step there
  };

  Kind kind = Kind::left_out;
  int device_slot = 0;
  int member = -1;
  // These two count for left_out only.
  bool is_of_a_trial = false;  // `member` was started to try the slot
  int failures = 0;            // in a row, with those of trials
  int times_left_out = 0;      // this one included
  std::chrono::milliseconds rest{0};
  std::string device{};  // what the driver reported; there is no `member` then. Empty: a failure is the reason
};

nlohmann::json to_json(const DeviceSlotChange& change);
// Throws nlohmann::json::exception or Error{invalid_file} when the JSON is not such a change.
DeviceSlotChange device_slot_change_from_json(const nlohmann::json& json);

}  // namespace holdfast::recovery
