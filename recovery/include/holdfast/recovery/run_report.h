#pragma once

// The story of a run as its journal tells it: what failed, how that was noticed, how long each part of the recovery
// took, and what was lost; which replicas were slow, which places were left out, and what was done about them. Of a run
// that is live, has ended or is dead; the journal is all that is read.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::recovery {

// All times are seconds since 1970, as the watchdog's host knew them.
struct RunReport {
  // Where a state came from that was read, not kept.
  struct Origin {
    std::string path{};  // of a savepoint, or what stands for the watchdog's memory
    std::int64_t step = 0;
  };

  // One watchdog.
  struct Start {
    double time = 0;
    int pid = 0;
    int replicas = 0;
    std::optional<Origin> resumed{};  // with its first generation; empty: at step 0, or not yet
    std::optional<double> ended{};    // empty: it is live, or it was killed
    int exit_code = 0;
    std::string sentence{};  // for the user
  };

  // The failure of one process.
  struct Incident {
    std::string cause{};
    std::vector<std::string> evidence{};  // what was seen, in order
    std::vector<std::string> frames{};    // of a crash, innermost first: function, file and build offset
    int member = -1;                      // the process's number in the run
    int rank = -1;                        // -1: it was part of no generation, and nobody waited for it
    int pid = 0;
    int generation = -1;     // that it was part of
    std::int64_t step = -1;  // that it was in; -1: in none
    int replicas = 0;        // of that generation; where it was part of none, of the one that trained, or 0

    double noticed = 0;
    std::optional<double> cancelled{};   // the waits of the others had been ended by then
    std::optional<double> opened{};      // the next generation was
    std::optional<double> progressed{};  // seen to be further than the run ever was
    std::optional<double> whole{};       // as many replicas as before
    int next_generation = -1;
    int next_replicas = 0;  // in it when it opened
    int survivors = 0;      // of them those that kept their state

    std::optional<Origin> resumed{};         // where no survivor had a state
    std::optional<std::int64_t> repeated{};  // steps computed again; empty: not known yet
    bool ended_run = false;                  // the run ended by it: nothing went on behind it
  };

  struct Savepoints {
    std::int64_t durable = 0;
    std::int64_t skipped = 0;
    std::string newest_path{};
    std::int64_t newest_step = -1;
    std::vector<std::string> problems{};  // writes that failed, files that were set aside; the first kMostProblems
  };
  static constexpr std::size_t kMostProblems = 100;

  // What was asked for: signals, scaling.
  struct Remark {
    double time = 0;
    std::string sentence{};
  };

  // Shards dealt anew, in a generation of its own.
  struct Deal {
    double time = 0;
    int generation = -1;
    std::vector<int> shards{};                     // by rank; empty: as many for each, as the program deals them
    std::vector<double> milliseconds_per_round{};  // by rank, which it was made from; empty: it was made from none
    std::string why{};                             // empty likewise
  };

  // A replica that computed more slowly than the others.
  struct SlowReplica {
    enum class Ending { open, quick_again, replaced, process_ended };

    int member = -1;  // the process's number in the run
    int rank = -1;
    int place = -1;       // -1: not known
    int generation = -1;  // in which it was noticed
    double noticed = 0;
    std::int64_t since_step = -1;                    // the first slow one
    double score = 1;                                // when noticed: so many times as long as the others
    std::optional<double> milliseconds_per_round{};  // of shards, when noticed
    double waiting_share = 0;                        // of its time in steps, when noticed

    std::vector<Deal> deals{};         // while it was slow, and the one that took back the last of these
    std::vector<Remark> left_alone{};  // why it was not replaced
    Ending ending = Ending::open;      // open: it was slow when the journal ends, or its watchdog did
    std::optional<double> ended{};
    int replaced_by = -1;  // a process; -1: by none, or not yet
  };

  // A place (device) that was left out, since processes failed there one after the other, or its driver said that it is
  // lost.
  struct Rest {
    int place = -1;
    double began = 0;
    double seconds = 0;                  // that it was to last
    bool is_of_a_trial = false;          // the last failure was that of a process that tried the place
    int failures = 0;                    // in a row, trials among them
    int times_left_out = 0;              // with this time
    int incident = -1;                   // the last of the failures, an index of `incidents`; -1: not known
    std::optional<double> tried{};       // when a process was started there
    int tried_by = -1;                   // that process
    std::optional<double> used_again{};  // when a process had trained a step there
    int shown_well_by = -1;              // that process
    std::string device{};                // what happened to it, where that is why it was left out
  };

  std::vector<Start> starts{};
  std::vector<Incident> incidents{};
  std::vector<Remark> remarks{};
  std::vector<SlowReplica> slow_replicas{};
  std::vector<Rest> rests{};
  Savepoints savepoints{};
  std::int64_t furthest_step = -1;  // that the journal mentions
  int generations = 0;
  std::int64_t skipped_lines = 0;  // torn, or none of Holdfast's
};

// Throws Error{not_found} where there is no journal.
RunReport read_run_report(const std::string& journal_path);

// As JSON text, with the names above.
std::string to_json(const RunReport& report);

}  // namespace holdfast::recovery
