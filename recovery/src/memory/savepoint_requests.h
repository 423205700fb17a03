#pragma once

// Requests for a savepoint of the live run that are not answered yet. Each has a number, and an answer to one answers
// all earlier ones, too. It reads no clock: the caller passes the time.

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

  // Returns the number of the request, which is above 0; 0 when kMost requests are open.
  int add(Answer answer, Moment deadline);
  // The number of the newest open request; 0 if no request is open.
  int newest() const { return open_.empty() ? 0 : open_.back().number; }

  std::size_t size() const { return open_.size(); }

  // Answers this request and all earlier ones.
  void answer(int number, const nlohmann::json& body);
  void refuse_all(const std::string& sentence);
  // Refuses the requests whose deadline has passed.
  void look(Moment now);

 private:
  struct Request {
    int number = 0;
    Answer answer;
    Moment deadline{};
  };

  // Removes requests before it answers them, since an answer may add a request.
  template <class Predicate>
  void answer_where(const Predicate& predicate, const nlohmann::json& body);

  std::vector<Request> open_;  // the oldest first
  int last_number_ = 0;
};

}  // namespace holdfast::recovery
