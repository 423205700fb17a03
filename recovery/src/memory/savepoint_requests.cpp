// A savepoint that is durable meets every earlier request as well, so one answer may go to several peers.

#include "memory/savepoint_requests.h"

#include <utility>

namespace holdfast::recovery {

int SavepointRequests::add(Answer answer, Moment deadline) {
  // Each open request belongs to a peer that waits. A program that asks in a loop must not fill the memory.
  if (open_.size() >= kMost) return 0;
  open_.push_back({.number = ++last_number_, .answer = std::move(answer), .deadline = deadline});
  return last_number_;
}

template <class Predicate>
void SavepointRequests::answer_where(const Predicate& predicate, const nlohmann::json& body) {
  std::vector<Request> answered;
  std::erase_if(open_, [&](Request& request) {
    if (!predicate(request)) return false;
    answered.push_back(std::move(request));
    return true;
  });
  for (const Request& request : answered) request.answer(body);
}

// Numbers rise with time, so a savepoint for one request is new enough for all before it.
void SavepointRequests::answer(int number, const nlohmann::json& body) {
  answer_where([number](const Request& request) { return request.number <= number; }, body);
}

void SavepointRequests::refuse_all(const std::string& sentence) {
  answer_where([](const Request&) { return true; }, {{"ok", false}, {"error", sentence}});
}

void SavepointRequests::look(Moment now) {
  answer_where([now](const Request& request) { return now >= request.deadline; },
               {{"ok", false},
                {"error",
                 "no savepoint was made in time; a savepoint that was begun may still become durable. The journal says "
                 "what the run does"}});
}

}  // namespace holdfast::recovery
