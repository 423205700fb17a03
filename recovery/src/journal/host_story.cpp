#include "journal/host_story.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "journal/journal.h"

namespace holdfast::recovery {

void HostStory::begin_start() {
  there_.clear();
  open_.clear();
}

void HostStory::take_decision(const std::string& event, double noticed, const nlohmann::json& line) {
  const bool is_loss = event == "host_lost";
  const bool is_leave = event == "host_leaving";
  if (event == "host_joined" || event == "host_returned") {
    const int host = line.at("host").get<int>();
    there_.insert(host);
    if (const auto open = open_.extract(host)) absences_[open.mapped()].returned = noticed;
  } else if (is_loss || is_leave) {
    const int host = line.at("host").get<int>();
    // A host that was asked to leave is lost later, and a host may be lost before it was part of the run.
    if (there_.erase(host) == 0) return;
    open_[host] = absences_.size();
    absences_.push_back(
        {.host = host, .began = noticed, .was_asked = is_leave, .why = is_loss ? line.value("what", "") : ""});
  }
}

nlohmann::json to_json(const RunReport::Absence& absence) {
  return {{"host", absence.host},
          {"began", absence.began},
          {"was_asked", absence.was_asked},
          {"why", absence.why},
          {"returned", or_null(absence.returned)}};
}

}  // namespace holdfast::recovery
