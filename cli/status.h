#pragma once

// `holdfast status RUN`: what each process of a live run does.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::cli {

// The status of `run` for people. `status` is an answer as recovery/run_control.h describes it. Throws
// Error{unsupported} if it lacks a part.
std::string describe_status(const std::string& run, const nlohmann::json& status);

}  // namespace holdfast::cli
