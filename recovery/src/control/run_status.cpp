// Rates are computed from repeated looks at the counters of the processes. A process reports totals only, so that a
// look that is missed loses nothing.

#include "control/run_status.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include "decide/membership.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;

double count_seconds(Moment::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Counted by rank: a restart gives the rank another member, whose own count would always be 0.
std::int64_t restarts_of(const RestartCounts& restarts, int rank) {
  const auto found = restarts.by_rank.find(rank);
  return found == restarts.by_rank.end() ? 0 : found->second;
}

// The member that tries the device slot, or null.
Json tried_by(const State& state, int slot) {
  const auto found = std::find_if(state.members.begin(), state.members.end(), [&](const Member& member) {
    return member.device_slot == slot && is_able(member) && is_on_trial(state, member);
  });
  return found == state.members.end() ? Json(nullptr) : Json(found->id);
}

}  // namespace

void SampleRate::look(std::uint64_t samples, Moment now) {
  // Time before the first step is not training.
  if (samples != (changes_.empty() ? 0 : changes_.back().samples)) changes_.push_back({samples, now});
  // Two entries stay, however slow the steps are.
  while (changes_.size() > 2 && now - changes_.front().moment > kWindow) changes_.pop_front();
}

double SampleRate::per_second(Moment now) const {
  if (changes_.size() < 2) return 0;
  const Change& first = changes_.front();
  const Change& last = changes_.back();
  const Moment::duration usual = (last.moment - first.moment) / static_cast<int>(changes_.size() - 1);
  // Between two steps the count stands still. Until the usual time has passed, that does not show a slower rate.
  const Moment end = std::max(last.moment, now - usual);
  if (end <= first.moment) return 0;
  return static_cast<double>(last.samples - first.samples) / count_seconds(end - first.moment);
}

void RunStatus::look(const std::map<int, MemberStatus>& member_statuses, Moment now) {
  // Members are never numbered again, so without this the map would grow with each death.
  std::erase_if(courses_, [&](const auto& course) { return !member_statuses.contains(course.first); });
  for (const auto& [member, member_status] : member_statuses) {
    const auto [course, is_new] = courses_.try_emplace(member, Course{member_status.progress, now});
    if (course->second.progress != member_status.progress) course->second.last_progress = now;
    course->second.progress = member_status.progress;
    course->second.rate.look(member_status.samples, now);
  }
}

Json RunStatus::device_of(std::size_t slot) const {
  return slot < devices_.size() ? Json(devices_[slot]) : Json(nullptr);
}

// Describes the device slots that are left out.
Json RunStatus::describe_rests(const State& state, Moment now) const {
  Json rests = Json::array();
  for (std::size_t i = 0; i < state.device_slots.size(); ++i) {
    const DeviceSlot& slot = state.device_slots[i];
    if (!slot.rest_ends) continue;
    rests.push_back({{"place", i},
                     {"device", device_of(i)},
                     {"why", slot.why},
                     {"times_left_out", slot.times_left_out},
                     {"seconds_left", std::max(0.0, count_seconds(*slot.rest_ends - now))},
                     {"tried_by", tried_by(state, static_cast<int>(i))}});
  }
  return rests;
}

// The hosts of a run that has several; null for one on a single host.
Json RunStatus::describe_hosts(const State& state, Moment now) {
  if (state.hosts.size() == 1) return nullptr;
  Json hosts = Json::array();
  for (std::size_t i = 0; i < state.hosts.size(); ++i) {
    const Host& host = state.hosts[i];
    const bool is_away = host.stage == Host::Stage::lost || host.stage == Host::Stage::leaving;
    hosts.push_back({{"host", i},
                     {"stage", to_string(host.stage)},
                     {"was_asked_to_leave", host.was_asked_to_leave},
                     {"why_away", host.why_away},
                     {"seconds_away", is_away ? Json(count_seconds(now - host.away_since)) : Json(nullptr)}});
  }
  return hosts;
}

Json RunStatus::describe(const State& state, const std::map<int, MemberStatus>& member_statuses,
                         const RestartCounts& restarts, Moment now) const {
  Json members = Json::array();
  double rate = 0;
  std::int64_t step = -1;
  for (const Member& member : state.members) {
    const auto member_status = member_statuses.find(member.id);
    const auto course = courses_.find(member.id);
    // Its process has just started or ended, so there is nothing to show.
    if (member_status == member_statuses.end() || course == courses_.end()) continue;
    const double own_rate = course->second.rate.per_second(now);
    rate += own_rate;
    // Replicas that train together differ by a step at most, so the furthest one shows where the run is.
    step = std::max(step, member_status->second.step);
    members.push_back(
        {{"member", member.id},
         {"rank", number_or_null(member.rank)},
         {"place", member.device_slot},
         {"device", device_of(static_cast<std::size_t>(member.device_slot))},
         {"stage", to_string(member.stage)},
         {"pid", member_status->second.pid},
         {"step", member_status->second.step},
         {"phase", to_string(member_status->second.phase)},
         {"seconds_since_progress", count_seconds(now - course->second.last_progress)},
         {"samples_per_second", own_rate},
         {"resident_bytes", resident_bytes(member_status->second.pid)},
         {"shards", member_status->second.shards == 0 ? Json(nullptr) : Json(member_status->second.shards)},
         {"restarts", member.rank < 0 ? 0 : restarts_of(restarts, member.rank)}});
    if (state.hosts.size() == 1) continue;
    members.back()["host"] = member.host;
    // The process of this number on the head's own host is another one.
    if (member.host != 0) members.back()["resident_bytes"] = nullptr;
  }
  Json body = {{"phase", to_string(state.phase)},
               {"generation", state.generation},
               {"target", state.target},
               {"spares", spares(state)},
               {"step", step},
               {"samples_per_second", rate},
               {"restarts", restarts.all},
               {"is_stop_requested", state.is_stop_requested},
               {"members", members},
               {"rests", describe_rests(state, now)}};
  if (Json hosts = describe_hosts(state, now); !hosts.is_null()) body["hosts"] = std::move(hosts);
  return body;
}

// The file of a process that is gone does not open, and both numbers stay 0.
std::uint64_t resident_bytes(int pid) {
  std::uint64_t all_pages = 0;
  std::uint64_t resident_pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", pid)) >> all_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace holdfast::recovery
