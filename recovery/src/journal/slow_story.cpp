// A replica's slowness has a beginning and an end, with decisions in between. The journal spreads them over lines of
// several kinds; this joins them by member. See docs/decisions/shard-assignment.md.

#include "journal/slow_story.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "journal/journal.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;
using SlowReplica = RunReport::SlowReplica;

std::string name_of(SlowReplica::Ending ending) {
  constexpr std::array kNames{"open", "quick_again", "replaced", "process_ended"};  // in the order of the enumerators
  return kNames.at(static_cast<std::size_t>(ending));
}

Json to_json(const RunReport::Assignment& assignment) {
  return {{"time", assignment.time},
          {"generation", assignment.generation},
          {"shards", assignment.shards},
          {"milliseconds_per_round", assignment.milliseconds_per_round},
          {"why", assignment.why}};
}

RunReport::Assignment assignment_of(double time, const Json& line) {
  return {.time = time,
          .generation = line.at("generation").get<int>(),
          .shards = line.value("shards", std::vector<int>{}),
          .milliseconds_per_round = line.value("milliseconds_per_round", std::vector<double>{}),
          .why = line.value("why", "")};
}

bool is_uneven(const std::vector<int>& shards) {
  if (shards.empty()) return false;
  const auto [fewest, most] = std::minmax_element(shards.begin(), shards.end());
  // An even assignment differs by one shard where their number is not a multiple of the ranks.
  return *most - *fewest > 1;
}

}  // namespace

// The replicas of the last watchdog are gone. Those that were slow keep Ending::open, since nothing shows their end.
void SlowStory::begin_start() {
  device_slots_.clear();
  members_.clear();
  open_.clear();
  unevenly_.clear();
  to_succeed_.clear();
}

RunReport::SlowReplica* SlowStory::slow_now(int member) {
  const auto found = open_.find(member);
  return found == open_.end() ? nullptr : &replicas_[found->second];
}

void SlowStory::end(int member, Ending ending, double time) {
  const auto found = open_.find(member);
  if (found == open_.end()) return;
  SlowReplica& replica = replicas_[found->second];
  replica.ending = ending;
  replica.ended = time;
  if (ending == Ending::replaced) to_succeed_.push_back(found->second);
  // Later events of the member then find nothing to end.
  open_.erase(found);
}

// The watchdog writes such a line for every member whenever one becomes slow, or is no longer slow.
void SlowStory::take_straggler(double time, const Json& line) {
  const int member = line.at("member").get<int>();
  if (!line.at("is_straggler").get<bool>()) return end(member, Ending::quick_again, time);
  // Not a second beginning: the line was written because another member's state changed.
  if (slow_now(member) != nullptr) return;
  SlowReplica replica{.member = member,
                      .rank = line.at("rank").get<int>(),
                      .generation = line.at("generation").get<int>(),
                      .noticed = time,
                      .since_step = line.at("since_step").get<std::int64_t>(),
                      .score = line.at("score").get<double>(),
                      .waiting_share = line.value("waiting_share", 0.0)};
  if (line.contains("milliseconds_per_round")) {
    replica.milliseconds_per_round = line.at("milliseconds_per_round").get<double>();
  }
  if (const auto slot = device_slots_.find(member); slot != device_slots_.end()) replica.device_slot = slot->second;
  open_[member] = replicas_.size();
  replicas_.push_back(std::move(replica));
}

// An assignment is made for the replicas that are slow. The next one also belongs to the replicas of the one before it,
// since it ends their uneven assignment.
void SlowStory::take_assignment(double time, const Json& line) {
  const RunReport::Assignment assignment = assignment_of(time, line);
  std::vector<std::size_t> concerned = std::exchange(unevenly_, {});
  for (const auto& [member, index] : open_) concerned.push_back(index);
  std::sort(concerned.begin(), concerned.end());
  // A replica may be slow and unevenly assigned at once. It gets the assignment once.
  concerned.erase(std::unique(concerned.begin(), concerned.end()), concerned.end());
  for (const std::size_t index : concerned) replicas_[index].assignments.push_back(assignment);
  if (is_uneven(assignment.shards)) unevenly_ = std::move(concerned);
}

// The end of a slow replica's process ends its slowness. A decision about a slow replica that kept it says why.
void SlowStory::take_decision(const std::string& event, double time, const Json& line, const RecordedActions& actions) {
  for (const auto& [member, slot] : actions.started) device_slots_[member] = slot;
  const int member = line.value("member", -1);
  if (event == "slow" && actions.has_failure_of(member)) end(member, Ending::replaced, time);
  // A replica that was just replaced is not open any more, so only one that stays gets the reason.
  if (SlowReplica* replica = event == "slow" ? slow_now(member) : nullptr) {
    replica->left_alone.push_back({time, line.at("reason").get<std::string>()});
  }
  for (const int killed : actions.killed) end(killed, Ending::process_ended, time);
  if (event == "exited" || event == "died") end(member, Ending::process_ended, time);
  if (actions.opened) note_successors(actions.members);
}

// When the spare has failed, too, a survivor may have taken the rank. Then the slow replica has no successor.
void SlowStory::note_successors(const std::vector<int>& by_rank) {
  const std::vector<int> before = std::exchange(members_, by_rank);
  for (const std::size_t index : std::exchange(to_succeed_, {})) {
    const auto rank = static_cast<std::size_t>(replicas_[index].rank);
    const bool is_new = rank < by_rank.size() && std::find(before.begin(), before.end(), by_rank[rank]) == before.end();
    if (is_new) replicas_[index].replaced_by = by_rank[rank];
  }
}

Json to_json(const SlowReplica& replica) {
  Json assignments = Json::array();
  for (const RunReport::Assignment& assignment : replica.assignments) assignments.push_back(to_json(assignment));
  Json left_alone = Json::array();
  for (const RunReport::Remark& remark : replica.left_alone) {
    left_alone.push_back({{"time", remark.time}, {"sentence", remark.sentence}});
  }
  return {{"member", replica.member},
          {"rank", replica.rank},
          {"place", replica.device_slot},
          {"generation", replica.generation},
          {"noticed", replica.noticed},
          {"since_step", replica.since_step},
          {"score", replica.score},
          {"milliseconds_per_round", or_null(replica.milliseconds_per_round)},
          {"waiting_share", replica.waiting_share},
          {"deals", assignments},
          {"left_alone", left_alone},
          {"ending", name_of(replica.ending)},
          {"ended", or_null(replica.ended)},
          {"replaced_by", number_or_null(replica.replaced_by)}};
}

}  // namespace holdfast::recovery
