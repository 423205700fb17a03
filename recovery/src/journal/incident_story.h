#pragma once

// What a user is told of failures: a line an incident, in plain words, where the journal has a line for each decision.
// Pure: it is told what happened and was decided, and gives back the lines.
//
//   incident   noticed -> its next generation is open -> told, once training has got further and all causes are known
//                    '----------- told after kPatience in any case; then a second line says that training goes on
//
// Processes that fail before the next generation opens are one incident. One that ends the run is told by the run's
// last sentence alone.

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

  // `tells_steps`: false of programs of which nothing is known but how their processes end.
  explicit IncidentStory(bool tells_steps) : tells_steps_(tells_steps) {}

  // `rank`: of the event's member before the decision, or that it was started for.
  std::vector<Line> take(const Event& event, int rank, const Decision& decision, Moment now);
  // Incidents that have waited for long.
  std::vector<Line> look(Moment now);
  // What was not told yet when the run ends, except for what `sentence` tells.
  std::vector<Line> end(int exit_code, const std::string& sentence);
  // The run's last sentence for the user: the cause of its end comes first.
  std::string last_sentence(int exit_code, const std::string& sentence) const;

 private:
  struct Loss {
    int member = 0;
    int rank = 0;
    EventKind kind{};  // by which it was noticed
    bool is_thrown = false;
    std::string cause{};  // empty: not known yet
  };

  struct Incident {
    std::vector<Loss> losses{};
    std::int64_t step = -1;
    Moment noticed{};
    bool is_of_a_newcomer = false;  // nobody waits for it
    std::vector<std::string> remarks{};
    bool is_open = false;  // the next generation
    int replicas = 0;      // in it
    int survivors = 0;     // of these
    bool is_told = false;
    std::optional<Moment> went_on{};
    std::int64_t went_on_at = -1;  // step
  };

  void note_failure(const Event& event, int rank, const Decision& decision, Moment now);
  void settle_causes(const Decision& decision);
  void note_places(const Event& event, const Decision& decision);
  void note_generation(const Decision& decision, Moment now);
  void note_progress(const Event& event, Moment now);
  Loss* find_loss(int member);
  const Loss* loss_of(const std::string& sentence) const;
  std::vector<Line> lines_due(Moment now);
  std::string describe(const Incident& incident) const;
  std::string describe_outcome(const Incident& incident) const;
  std::string describe_ranks(const std::set<int>& ranks) const;

  const bool tells_steps_;
  std::vector<Incident> incidents_;  // after which training has not gone on, or that are not told
  std::vector<int> by_rank_;         // members of the newest generation
  int target_ = 1;
  bool is_more_expected_ = false;  // a new process starts, or is to
};

}  // namespace holdfast::recovery
