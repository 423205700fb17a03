#pragma once

// What training reports to the watchdog of this replica, and what it asks of it. One implementation speaks to the
// watchdog of a supervised run, NoSupervision to none, and tests have their own.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/fault_point.h"
#include "holdfast/base/training_phase.h"
#include "train/context/requests.h"

namespace holdfast {

// Memory for one state that outlives this process.
struct OutlivingMemory {
  std::span<std::byte> bytes;     // for the state
  std::span<std::byte> all;       // the block that `bytes` lies in; mostly the same for consecutive states
  std::shared_ptr<void> mapping;  // keeps `all` mapped as long as anyone holds it
  // Called when `bytes` are written: passes them to `accepts`, and keeps the state if that returns true. Any thread.
  std::function<bool(const std::function<bool(std::span<const std::byte>)>& accepts)> keep;
};

// What the thread that writes savepoints is doing.
struct BackgroundWork {
  std::string what{};        // "fsync of run/savepoint-0000000120.h5"
  std::uint64_t bytes = 0;   // that this work moves to or from the storage
  bool is_callback = false;  // it runs code of the application
};

// What training reports to the supervisor of this replica, and what the supervisor asks of training. Functions may be
// called on any thread.
class Supervision {
 public:
  virtual ~Supervision() = default;
  // Training has entered `phase` of `step`. Each call is also a sign of life.
  virtual void enter(TrainingPhase phase, std::int64_t step) = 0;
  // Training is on its way from one generation to the next, which may take a device longer than a step.
  virtual void regroup() = 0;
  // The thread that writes savepoints has begun `work`, or has made progress with it. The watchdog may end this process
  // if no call follows for too long. There is one work at a time.
  virtual void enter_background(const BackgroundWork& work) = 0;
  virtual void leave_background() = 0;
  // Training has reached `point`, where an injected fault may strike. `step` is -1 outside the steps.
  virtual void reach(FaultPoint point, std::int64_t step) = 0;
  // Lets an injected fault change numbers. Calls `floats` only if one is due, for the arrays of the fault's target.
  using FloatsOf = std::function<std::vector<std::span<float>>(FaultTarget)>;
  virtual void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) = 0;
  // Whether a fault may change numbers at that point. If so, they must not be used before corrupt().
  virtual bool may_corrupt(FaultPoint point, std::int64_t step) = 0;
  // The factor by which an injected fault slows the computation of `step`; 1 without a fault.
  virtual double slowdown(std::int64_t step) = 0;
  // Whether this replica may update its state, and rename or delete files. Always true on a single host. On one of
  // several hosts it is false while the others may go on without this one.
  virtual bool may_change() const = 0;
  // What the watchdog asks of this replica: a stop, a regroup at the next step boundary, or a savepoint that this
  // replica has not begun. It never asks for a comparison.
  virtual StepRequests requests() const = 0;
  // Returns the number of the newest request for a savepoint. A report with this number answers all requests up to it.
  virtual int begin_requested_savepoint() = 0;
  virtual void report_savepoint(int number, const std::string& path, std::int64_t step) = 0;
  virtual void report_no_savepoint(int number, const std::string& why) = 0;
  // This process has trained on so many more samples.
  virtual void count_samples(std::int64_t samples) = 0;
  // Keeps a state in memory that outlives this process, if there is such memory. `write` copies the state piece by
  // piece. A copy that `accepts` refuses is dropped.
  using Write = std::function<void(std::size_t begin, std::span<std::byte> piece)>;
  using Accepts = std::function<bool(std::span<const std::byte> copied)>;
  virtual void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) = 0;
  // Does what keeping states of this size needs once, and what would make the first call of keep_in_memory() slow. It
  // takes as long as keeping several states.
  virtual void prepare_in_memory(std::size_t bytes) = 0;
  // Memory for a state that the caller copies there itself, one at a time; empty if no memory outlives this process.
  virtual std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) = 0;
  // Calls `read` with the newest whole state that any process kept in this way. Returns false if no process did.
  virtual bool read_from_memory(const std::function<void(std::span<const std::byte>)>& read) = 0;
  // Writes a line to the run's journal.
  virtual void report_event(const std::string& event, const std::string& detail) = 0;
};

// Stands in for a watchdog where there is none.
class NoSupervision : public Supervision {
 public:
  void enter(TrainingPhase, std::int64_t) override {}
  void regroup() override {}
  void enter_background(const BackgroundWork&) override {}
  void leave_background() override {}
  void reach(FaultPoint, std::int64_t) override {}
  void corrupt(FaultPoint, std::int64_t, const FloatsOf&) override {}
  bool may_corrupt(FaultPoint, std::int64_t) override { return false; }
  double slowdown(std::int64_t) override { return 1; }
  bool may_change() const override { return true; }
  StepRequests requests() const override { return {}; }
  int begin_requested_savepoint() override { return 0; }
  void report_savepoint(int, const std::string&, std::int64_t) override {}
  void report_no_savepoint(int, const std::string&) override {}
  void count_samples(std::int64_t) override {}
  void keep_in_memory(std::int64_t, std::size_t, const Write&, const Accepts&) override {}
  void prepare_in_memory(std::size_t) override {}
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t, std::size_t) override { return std::nullopt; }
  bool read_from_memory(const std::function<void(std::span<const std::byte>)>&) override { return false; }
  void report_event(const std::string&, const std::string&) override {}
};

}  // namespace holdfast
