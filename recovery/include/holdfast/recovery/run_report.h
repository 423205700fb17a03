#pragma once

// What happened in a run, read from its journal: what failed, how that was noticed, how long each part of the recovery
// took, and what was lost. Also which replicas were slow, which device slots were left out, and what was done about
// them. The run may be live, have ended, or have been killed; nothing but the journal is read.
//
//   const RunReport report = read_run_report("run/journal.jsonl");
//   for (const RunReport::Incident& incident : report.incidents) std::printf("%s\n", incident.cause.c_str());
//
// Over several hosts the journal is in the run directory of host 0. Journals of earlier versions are read, too.
//
// A report is a plain value, and does not follow a live run: read it again to learn what came after it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::recovery {

// All times are seconds since 1970, by the clock of the watchdog's host, so that they can be compared with other logs.
// Where that clock was set back, a difference of two may be negative. A device slot is named by its index. -1 means
// unknown or none, unless a member says more.
struct RunReport {
  // Where a state came from that was read, because no replica had kept it.
  struct Origin {
    std::string path{};     // of a savepoint, or a text that stands for the watchdog's memory
    std::int64_t step = 0;  // of that state
  };

  // One start of the program: one watchdog, in order of time.
  struct Start {
    double time = 0;                  // of the start
    int pid = 0;                      // of the watchdog
    int replicas = 0;                 // asked for
    int hosts = 1;                    // that the run has
    std::optional<Origin> resumed{};  // by its first generation; empty: it began at step 0, or has no generation yet
    std::optional<double> ended{};    // empty: the watchdog is live, or was killed
    int exit_code = 0;                // of the watchdog, once it ended
    std::string sentence{};           // for the user
  };

  // The failure of one process. What was seen of it at several moments, such as a death and then its exit, is one
  // incident. Processes that were lost together, as with their host, have an incident each. With a rank, the run got no
  // further from `noticed` to `progressed`, which is empty where it never did:
  //
  //   if (incident.progressed) std::printf("%.3f s\n", *incident.progressed - incident.noticed);
  struct Incident {
    std::string cause{};                  // a sentence
    std::vector<std::string> evidence{};  // what was observed, in order
    std::vector<std::string> frames{};    // of a crash, innermost first: function, file and offset in the file
    int member = -1;                      // the number of the process in the run
    int rank = -1;                        // -1: it was part of no generation, and no generation waited for it
    int pid = 0;                          // of the process
    int host = -1;                        // that it ran on, in a run over several hosts
    int generation = -1;                  // that the process was part of
    std::int64_t step = -1;               // that the process was in
    int replicas = 0;                     // of that generation; without one, of the generation that trained, or 0

    // The recovery, in the order in which it goes on. A hang is older than the moment at which it was noticed.
    double noticed = 0;                  // when the watchdog noticed it
    std::optional<double> cancelled{};   // the others no longer waited
    std::optional<double> opened{};      // the next generation began
    std::optional<double> progressed{};  // it was seen to be further than the run ever was
    std::optional<double> whole{};       // the run had as many replicas as before
    int next_generation = -1;            // the one after the failure
    int next_replicas = 0;               // in that generation when it opened
    int survivors = 0;                   // those among them that kept their state

    // What it cost:
    std::optional<Origin> resumed{};         // the state that was read, where no survivor had one
    std::optional<std::int64_t> repeated{};  // number of steps computed again; empty: not known yet
    bool ended_run = false;                  // the run ended with this failure
  };

  // What became of savepoints. A storage that fails for long has a problem for each savepoint, of which the first tell
  // all.
  struct Savepoints {
    std::int64_t durable = 0;             // number of savepoints on stable storage
    std::int64_t skipped = 0;             // not made, because the storage was slow
    std::string newest_path{};            // of those that are durable
    std::int64_t newest_step = -1;        // of those that are durable
    std::vector<std::string> problems{};  // failed writes, and files that were set aside; the first kMostProblems
  };
  static constexpr std::size_t kMostProblems = 100;  // how many problems are listed

  // What somebody asked for (signals, scaling), as a sentence.
  struct Remark {
    double time = 0;         // when it was asked for
    std::string sentence{};  // for the user
  };

  // An assignment of shards to replicas that the watchdog made for a generation.
  struct Assignment {
    double time = 0;                               // when it was made
    int generation = -1;                           // that it is for
    std::vector<int> shards{};                     // by rank; empty: as evenly as the program assigns them
    std::vector<double> milliseconds_per_round{};  // by rank: what was measured before; empty: nothing was
    std::string why{};                             // empty where nothing was measured
  };

  // A replica that computed more slowly than the others. RecoveryOptions::when_slow says what is done about one.
  struct SlowReplica {
    // How the slow time ended. open: it had not when the journal or its watchdog ended.
    enum class Ending { open, quick_again, replaced, process_ended };

    int member = -1;                                 // the number of the process in the run
    int rank = -1;                                   // in that generation
    int device_slot = -1;                            // "place" in JSON
    int generation = -1;                             // in which it was noticed
    double noticed = 0;                              // when the watchdog noticed it
    std::int64_t since_step = -1;                    // the first slow step
    double score = 1;                                // when noticed: the factor by which it took longer than the others
    std::optional<double> milliseconds_per_round{};  // when noticed; a round is the shards that it computes at once
    double waiting_share = 0;                        // when noticed: the share of its time in steps that it waited

    std::vector<Assignment> assignments{};  // made while it was slow, and the one that undid the last of these
    std::vector<Remark> left_alone{};       // why it was not replaced
    Ending ending = Ending::open;           // see Ending
    std::optional<double> ended{};          // when the slow time ended
    int replaced_by = -1;                   // the process that took its place
  };

  // A time in which a device slot was left out, because processes failed there one after the other, or because the
  // driver reported that the device is lost. RecoveryOptions::place_rest is the first length. A trial that fails begins
  // another rest of the slot.
  struct Rest {
    int device_slot = -1;                // that was left out; "place" in JSON
    double began = 0;                    // when it began
    double seconds = 0;                  // planned length
    bool is_of_a_trial = false;          // the last failure was that of a process that tried the slot
    int failures = 0;                    // in a row, including those of trials
    int times_left_out = 0;              // including this time
    int incident = -1;                   // the last of the failures, an index of `incidents`
    std::optional<double> tried{};       // when a process was started there
    int tried_by = -1;                   // the number of that process
    std::optional<double> used_again{};  // when a process had trained a step there
    int shown_well_by = -1;              // the number of that process
    std::string device{};                // what happened to the device, where that is the reason
  };

  // A time in which a host of a run over several was not part of it.
  struct Absence {
    int host = 0;                      // its number; host 0 has the watchdog, and is never away
    double began = 0;                  // when it was lost, or asked to leave
    bool was_asked = false;            // it was asked to leave the run, by a signal
    std::string why{};                 // how it was lost; empty where it was asked to leave
    std::optional<double> returned{};  // when it was part of the run again
  };

  std::vector<Start> starts{};               // oldest first
  std::vector<Incident> incidents{};         // oldest first
  std::vector<Remark> remarks{};             // oldest first
  std::vector<SlowReplica> slow_replicas{};  // oldest first
  std::vector<Rest> rests{};                 // oldest first
  std::vector<Absence> absences{};           // oldest first; empty for a run on a single host
  Savepoints savepoints{};                   // of all starts together
  std::int64_t furthest_step = -1;           // the highest step that the journal mentions
  int generations = 0;                       // that opened, of all starts together
  std::int64_t skipped_lines = 0;            // torn, or not written by Holdfast
};

// Reads the whole journal, also of a live run, and blocks until it is read. Lines that it cannot use are counted, and
// do not hide the others. Throws Error{not_found} where there is no journal.
RunReport read_run_report(const std::string& journal_path);

// As JSON text, with the names above. A run on a single host has no "hosts", "host" and "absences". The time of
// what has not happened is null, as is the exit code of a start that has no end. Bytes that are not UTF-8 are replaced.
std::string to_json(const RunReport& report);

}  // namespace holdfast::recovery
