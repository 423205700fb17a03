#pragma once

// The log lines that a user reads about failures: one line for each incident, in plain words. The journal has a line
// for each decision. The class reads no clock and writes nothing: it takes events and decisions, and returns lines.
//
//   an incident:   noticed --> the next generation is open --> told, once training went on and all causes are known
//                     '------> told after kPatience at the latest; a second line then says that training went on
//
// Failures before the next generation opens belong to one incident. An incident that ends the run is told by the run's
// last sentence alone. See docs/decisions/journal.md.

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decide/supervisor.h"
#include "holdfast/base/log.h"

namespace holdfast::recovery {

class IncidentStory {
 public:
  static constexpr std::chrono::seconds kPatience{5};

  struct Line {
    LogLevel level = LogLevel::warning;
    std::string text{};
  };

  // `tells_steps` is false for a plain program: only the ends of its processes are known, not its steps.
  explicit IncidentStory(bool tells_steps) : tells_steps_(tells_steps) {}

  // `rank` is the rank that the event's member had before the decision, or that it was started for.
  std::vector<Line> take(const Event& event, int rank, const Decision& decision, Moment now);
  // The lines of incidents that are complete, or have waited for kPatience.
  std::vector<Line> look(Moment now);
  // The lines of incidents that are not told yet when the run ends, without the one that its last sentence tells.
  std::vector<Line> end(const RunEnding& ending);
  // The run's last sentence for the user. It begins with the cause, since that is what the user can change.
  std::string last_sentence(const RunEnding& ending) const;

 private:
  struct Loss {
    int member = 0;
    int rank = 0;
    EventKind kind{};  // of the event by which it was noticed
    bool is_thrown = false;
    std::string what{};      // of the event
    std::string cause{};     // empty: not known yet
    CauseKind cause_kind{};  // of a known cause
    int signal = 0;          // that ended the process; 0: none, or it has not ended
  };

  struct Incident {
    std::vector<Loss> losses{};
    std::int64_t step = -1;
    Moment noticed{};
    bool is_of_a_newcomer = false;  // no replica waits for the lost process
    std::vector<std::string> remarks{};
    bool is_open = false;  // the next generation has opened
    int replicas = 0;      // in the next generation
    int survivors = 0;     // among these replicas
    bool is_told = false;
    std::optional<Moment> went_on{};  // when training got further than before
    std::int64_t went_on_at = -1;     // the step that it reached
  };

  void note_failure(const Event& event, int rank, const Decision& decision, Moment now);
  void settle_causes(const Decision& decision);
  void note_slots(const Event& event, const Decision& decision);
  void note_generation(const Decision& decision, Moment now);
  void note_progress(const Event& event, Moment now);
  Loss* find_loss(int member);
  const Loss* loss_that_ends_the_run(const RunEnding& ending) const;
  static std::string what_happened(const Loss& loss, bool are_several, std::int64_t step);
  std::string describe(const Incident& incident) const;
  std::string describe_outcome(const Incident& incident) const;
  std::string describe_ranks(const std::set<int>& ranks) const;

  const bool tells_steps_;
  std::vector<Incident> incidents_;  // those that are not told, or after which training has not gone on
  std::vector<int> by_rank_;         // members of the newest generation
  int target_ = 1;                   // replicas that a generation should have
  bool is_more_expected_ = false;    // a new process is starting, or will start
};

}  // namespace holdfast::recovery
