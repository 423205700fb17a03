#pragma once

// What becomes of the places that processes run on, as the journal has it and a report reads it back.

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::recovery {

struct PlaceChange {
  enum class Kind {
    left_out,    // after the failure of `member`, or by the word of its device, for `rest`
    tried,       // by `member`, a process that was started there during or after the rest
    used_again,  // `member` has trained a step there
  };

  Kind kind = Kind::left_out;
  int place = 0;
  int member = -1;
  // Of one that is left out.
  bool is_of_a_trial = false;  // `member` tried it
  int failures = 0;            // in a row, trials among them
  int times_left_out = 0;      // with this time
  std::chrono::milliseconds rest{0};
  std::string device{};  // what happened to it, where that is the reason; there is no `member` then
};

nlohmann::json to_json(const PlaceChange& change);
// Throws nlohmann::json::exception or Error{invalid_file} for what is none.
PlaceChange place_change_from_json(const nlohmann::json& json);

}  // namespace holdfast::recovery
