#pragma once

// `holdfast scale` and `holdfast snapshot`: requests to a live run, through the socket in its run directory.

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "console.h"

namespace holdfast::cli {

struct Subcommands;

struct ScaleOptions {
  std::string run;
  int replicas = 0;
};

struct SnapshotOptions {
  std::string run;
  int seconds = 600;
};

// A watchdog answers at once, but it may have to wait for a processor.
inline constexpr std::chrono::seconds kAnswerPatience(10);

// Sends `request` to the watchdog of the run directory `run`, and returns its answer. Blocks for at most `patience`.
// Throws Error{not_found} when no run is live, and Error{unavailable} with the watchdog's sentence when it refuses.
nlohmann::json ask(const std::string& run, const nlohmann::json& request, std::chrono::seconds patience);

// Both return the exit code, and throw what ask() throws.
int scale(const ScaleOptions& options, Console& console);
int snapshot(const SnapshotOptions& options, Console& console);

// Add the subcommands with their options.
void add_scale(Subcommands& commands);
void add_snapshot(Subcommands& commands);

}  // namespace holdfast::cli
