#pragma once

// Requests to a live run, through the socket in its run directory.

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::cli {

// A watchdog answers at once, but it may have to wait for a processor.
inline constexpr std::chrono::seconds kAnswerPatience(10);

// Sends `request` to the watchdog of the run directory `run`, and returns its answer. Blocks for at most `patience`.
// Throws Error{not_found} when no run is live, Error{unavailable} with the watchdog's sentence when it refuses, and
// Error{unsupported} for an answer that is not one.
nlohmann::json ask(const std::string& run, const nlohmann::json& request, std::chrono::seconds patience);

// Throws Error{unsupported} for an answer that lacks a part, or has it in another form, as those of another version
// may.
[[noreturn]] void refuse_answer(const std::string& run, const std::string& answer);

// What `holdfast scale` and `holdfast snapshot` print for an answer. Throw what refuse_answer() throws.
std::string describe_scale(const std::string& run, const nlohmann::json& answer);
std::string describe_snapshot(const std::string& run, const nlohmann::json& answer);

}  // namespace holdfast::cli
