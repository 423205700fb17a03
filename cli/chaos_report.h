#pragma once

// The results of `holdfast chaos`, for people, for programs and for build servers.

#include <ostream>
#include <string>
#include <vector>

#include "holdfast/testing/resilience_test.h"
#include "holdfast/testing/soak.h"

namespace holdfast::cli {

struct ChaosCase {
  resilience::CaseResult result{};
  int missed = 0;        // the number of its faults that never struck
  std::string replay{};  // a command line that repeats it
};

struct ChaosReport {
  resilience::RunResult undisturbed{};
  bool allows_missed = false;
  std::vector<ChaosCase> cases{};
};

// The command's exit code.
int exit_code(const ChaosReport& report);

void write_table(const ChaosReport& report, std::ostream& out);
// Writes the cases that did not survive, and those with faults that never struck.
void write_findings(const ChaosReport& report, std::ostream& out);
std::string to_json_text(const ChaosReport& report);
std::string to_junit_text(const ChaosReport& report);

void write_soak(const resilience::SoakResult& soak, std::ostream& out);
std::string to_json_text(const resilience::SoakResult& soak, const ChaosReport& report);

}  // namespace holdfast::cli
