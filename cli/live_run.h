#pragma once

// Requests to a live run, through the socket in its run directory.

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::cli {

// A watchdog answers at once, but it may have to wait for a processor.
inline constexpr std::chrono::seconds kAnswerPatience(10);

// Sends `request` to the watchdog of the run directory `run`, and returns its answer. Blocks for at most `patience`.
// Throws Error{not_found} when no run is live, and Error{unavailable} with the watchdog's sentence when it refuses.
nlohmann::json ask(const std::string& run, const nlohmann::json& request, std::chrono::seconds patience);

}  // namespace holdfast::cli
