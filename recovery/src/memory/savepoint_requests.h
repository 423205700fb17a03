#pragma once

// Savepoints of the live run that somebody asked for, until the run has answered. Each has a number, and an answer to
// one answers those before it, too. Pure but for the answers: the caller brings the time.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "decide/restart_policy.h"

namespace holdfast::recovery {

class SavepointRequests {
 public:
  using Answer = std::function<void(const nlohmann::json&)>;

  static constexpr std::size_t kMost = 8;

  // The request's number, above 0; 0 where too many are open.
  int add(Answer answer, Moment deadline);
  // The number of the newest open one; 0: none.
  int newest() const { return open_.empty() ? 0 : open_.back().number; }

  std::size_t size() const { return open_.size(); }

  void answer(int number, const nlohmann::json& body);
  void refuse_all(const std::string& sentence);
  // Refuses those whose time has passed.
  void look(Moment now);

 private:
  struct Request {
    int number = 0;
    Answer answer;
    Moment deadline{};
  };

  // Their answers may add requests.
  template <class Predicate>
  void answer_where(const Predicate& predicate, const nlohmann::json& body);

  std::vector<Request> open_;  // the oldest first
  int last_number_ = 0;
};

}  // namespace holdfast::recovery
