#pragma once

// `holdfast scale` and `holdfast snapshot`: asking a live run for something, through its socket.

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

// With a watchdog that answers at once, but may have to wait for a processor.
inline constexpr std::chrono::seconds kAnswerPatience(10);

// The answer. Throws Error{not_found} where no run is live, Error{unavailable} with the sentence of a refusal.
nlohmann::json ask(const std::string& run, const nlohmann::json& request, std::chrono::seconds patience);

// Both return the exit code, and throw as ask() does.
int scale(const ScaleOptions& options, Console& console);
int snapshot(const SnapshotOptions& options, Console& console);

// Add the subcommands with their options.
void add_scale(Subcommands& commands);
void add_snapshot(Subcommands& commands);

}  // namespace holdfast::cli
