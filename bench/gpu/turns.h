#pragma once

// Has training make as many steps as it is told, and wait in between, so that what is compared takes turns within one
// run. Who waits holds its device, and uses nothing of it.

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// One turn: so many steps, of which the first `warm` are not counted.
struct Turn {
  std::int64_t number = 0;
  std::int64_t warm = 0;
  std::int64_t steps = 0;

  std::int64_t all() const { return warm + steps; }
};

// "NUMBER WARM STEPS", with anything behind it. Throws Error{invalid_argument} for other lines.
Turn parse_turn(const std::string& line);

// What is told of a turn, one line of JSON. `ends[0]` is when the turn began, `ends[i]` when its step i was done.
struct TurnReport {
  Turn turn;
  std::int64_t first_step = 0;  // its number in the run, from 1
  std::vector<std::chrono::steady_clock::time_point> ends;
  double loss = 0;
};
std::string describe(const TurnReport& report);

// Reads turns from the FIFO PREFIX.ask and answers through PREFIX.told. Training ends when nobody asks any more. The
// first step of the run belongs to no turn: what is made once is made in it.
class Turns final : public Callback {
 public:
  // Blocks until both are opened by whoever asks. Throws Error{input_output}.
  explicit Turns(const std::string& prefix);

  std::string name() const override { return "turns"; }
  void on_step_end(TrainingContext& context, const Logs& logs) override;

 private:
  void begin_turn(TrainingContext& context);
  // Without its end; empty where nobody asks any more.
  std::string next_line();

  FileDescriptor ask_;
  std::string read_;  // of ask_, and not yet given out
  std::ofstream told_;
  TurnReport report_;  // of the turn that is under way
};

}  // namespace holdfast
