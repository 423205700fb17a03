// The driver does not say which process an error belongs to, so what one process can cause by itself is only recorded
// (xid.cpp). Errors that make a device's memory untrustworthy replace the replicas on it.
// docs/decisions/failing-devices.md

#include "gpu/device_events.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "decide/membership.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kCudaPrefix = "cuda:";

std::string device_of(int cuda_number) {
  return std::string(kCudaPrefix) + std::to_string(cuda_number);
}

// Events without an Xid are described as if they had one.
Xid meaning_of(const GpuEvent& event) {
  if (event.kind == GpuEvent::Kind::xid) return xid_of(event.xid);
  if (event.kind == GpuEvent::Kind::lost) return {0, "the driver has lost it", XidAction::leave_out};
  return {0, "an error of its memory that cannot be corrected", XidAction::replace};
}

std::string story_of(const GpuEvent& event) {
  const std::string_view what = meaning_of(event).what;
  return event.kind == GpuEvent::Kind::xid ? fmt::format("Xid {}, {}", event.xid, what) : std::string(what);
}

// Devices of two hosts may have one name, and the driver knows those of its own.
std::vector<std::string> of_the_first_host(std::vector<std::string> devices, int hosts) {
  for (std::size_t slot = 0; slot < devices.size(); ++slot) {
    if (slot % static_cast<std::size_t>(hosts) != 0) devices[slot].clear();
  }
  return devices;
}

}  // namespace

DeviceEvents::DeviceEvents(std::vector<std::string> devices, int hosts, Journal& journal)
    : devices_(of_the_first_host(std::move(devices), hosts)), journal_(journal) {}

std::vector<int> DeviceEvents::cuda_numbers() const {
  std::set<int> numbers;
  for (const std::string& device : devices_) {
    if (!device.starts_with(kCudaPrefix)) continue;
    const auto number = whole_number<int>(std::string_view(device).substr(kCudaPrefix.size()));
    // A name of another form has no number that could be watched.
    if (number.value_or(-1) >= 0) numbers.insert(*number);
  }
  return {numbers.begin(), numbers.end()};
}

void DeviceEvents::watched(const std::vector<WatchedGpu>& gpus) {
  Json list = Json::array();
  for (const WatchedGpu& gpu : gpus) {
    list.push_back({{"device", device_of(gpu.cuda_number)},
                    {"index", gpu.facts.index},
                    {"name", gpu.facts.name},
                    {"uuid", gpu.facts.uuid},
                    {"pci_bus_id", gpu.facts.pci_bus_id},
                    {"has_events", gpu.has_events}});
  }
  // The journal says what was watched, so that a missing event means something.
  journal_.append({{"event", "devices_watched"}, {"devices", std::move(list)}});
}

void DeviceEvents::unwatched(const std::string& why) {
  journal_.append({{"event", "devices_unwatched"},
                   {"what", fmt::format("what happens to the GPUs themselves is not noticed: {}", why)}});
}

std::vector<Event> DeviceEvents::take(const GpuEvent& event, const State& state, Moment now) {
  const std::string device = device_of(event.cuda_number);
  const std::string what = fmt::format("{}: {}", device, story_of(event));
  const XidAction action = meaning_of(event).action;
  Last& last = last_[device];
  last.what = story_of(event);
  last.moment = now;
  // The count goes on beyond the lines, for `holdfast status`.
  if (++last.count <= kMostLines) write_down(device, event, action, what);
  std::vector<Event> events;
  if (action == XidAction::report) return events;
  // A further event of the same error must not replace the processes that were started after the first.
  const bool is_aftermath = action == XidAction::replace && last.blow && now - *last.blow < kAftermath;
  if (!is_aftermath) {
    // A device that is left out always replaces its replicas, also those that were started a moment ago.
    last.blow = now;
    last.first_newcomer = state.next_member;
  }
  for (std::size_t slot = 0; slot < devices_.size(); ++slot) {
    // Several device slots may name one device, and all of them are lost with it.
    if (action != XidAction::leave_out || devices_[slot] != device) continue;
    events.push_back({.kind = EventKind::device_slot_lost, .what = what, .device_slot = static_cast<int>(slot)});
  }
  add_failures(device, what, state, last.first_newcomer, events);
  return events;
}

void DeviceEvents::add_failures(const std::string& device, const std::string& what, const State& state,
                                int first_spared, std::vector<Event>& events) const {
  for (const Member& member : state.members) {
    const bool is_there = devices_.at(static_cast<std::size_t>(member.device_slot)) == device && is_able(member);
    // Numbers of members rise, so this one was started after the error that the event belongs to.
    if (!is_there || member.id >= first_spared) continue;
    events.push_back({.kind = EventKind::device_failed, .member = member.id, .what = what});
  }
}

void DeviceEvents::write_down(const std::string& device, const GpuEvent& event, XidAction action,
                              const std::string& what) {
  Json line{{"event", "device_event"}, {"device", device}, {"what", what}, {"action", to_string(action)}};
  if (event.kind == GpuEvent::Kind::xid) line["xid"] = event.xid;
  if (last_[device].count == kMostLines) {
    line["what"] =
        fmt::format("{}; of the further ones of this device, nothing is written down but what is done", what);
  }
  journal_.append(std::move(line));
}

// Durations and not times, since the moments are those of a monotonic clock.
Json DeviceEvents::describe(Moment now) const {
  Json list = Json::array();
  for (const auto& [device, last] : last_) {
    list.push_back({{"device", device},
                    {"what", last.what},
                    {"count", last.count},
                    {"seconds_ago", std::chrono::duration<double>(now - last.moment).count()}});
  }
  return list;
}

}  // namespace holdfast::recovery
