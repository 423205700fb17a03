#pragma once

// Makes as many steps as requested and then waits, so that contenders take turns within one run. A waiting contender
// keeps its memory on the device, but computes nothing.

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// One turn: `warm` steps that are not counted, then `steps` that are.
struct Turn {
  std::int64_t number = 0;
  std::int64_t warm = 0;
  std::int64_t steps = 0;

  std::int64_t all() const { return warm + steps; }
};

// Parses "NUMBER WARM STEPS", which anything may follow. Throws Error{invalid_argument} for other lines.
Turn parse_turn(const std::string& line);

// The report of a turn, one line of JSON. `ends[0]` is when the turn began, `ends[i]` when its step i was done.
struct TurnReport {
  Turn turn;
  std::int64_t first_step = 0;  // its number in the run, from 1
  std::vector<std::chrono::steady_clock::time_point> ends;
  double loss = 0;
};
std::string describe(const TurnReport& report);

// Reads turns from the FIFO PREFIX.ask and reports through PREFIX.told. Training ends when the other end is closed. The
// first step of the run belongs to no turn, since it also makes what is made only once.
class Turns final : public Callback {
 public:
  // Blocks until the other process has opened both FIFOs. Throws Error{input_output}.
  explicit Turns(const std::string& prefix);

  std::string name() const override { return "turns"; }
  void on_step_end(TrainingContext& context, const Logs& logs) override;

 private:
  void begin_turn(TrainingContext& context);
  // The next line without its end; empty when the other end is closed.
  std::string next_line();

  FileDescriptor ask_;
  std::string read_;  // read from ask_, but not returned yet
  std::ofstream told_;
  TurnReport report_;  // of the current turn
};

}  // namespace holdfast
