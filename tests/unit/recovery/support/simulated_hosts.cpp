// The network between hosts, and what agents and head do about it: beats, fences, and connections that are lost and
// made again. Times are short, so that much happens in a run of seconds. docs/decisions/host-simulation.md

#include <algorithm>
#include <csignal>
#include <utility>

#include "unit/recovery/support/simulated_world.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;

constexpr HostTimes kTimes{
    .beat = milliseconds(50), .fence = milliseconds(500), .stop = milliseconds(200), .host = milliseconds(1000)};
constexpr milliseconds kBetweenDials(100);

}  // namespace

// Slow by up to a tenth: what counts there as 100 ms may be 111 ms.
Microseconds SimulatedWorld::host_clock(int host) const {
  return now_ * (100 - connections_.at(static_cast<std::size_t>(host)).slowness) / 100;
}

bool SimulatedWorld::is_cut(int host) const {
  const Connection& connection = connections_.at(static_cast<std::size_t>(host));
  return now_ < connection.up_cut_until || now_ < connection.down_cut_until;
}

// A reduction needs all hosts, in both directions.
bool SimulatedWorld::is_any_cut(const std::vector<int>& members) const {
  return std::any_of(members.begin(), members.end(), [this](int member) {
    const int host = processes_.at(member).host;
    return host > 0 && (is_cut(host) || !connections_.at(static_cast<std::size_t>(host)).has_agent);
  });
}

bool SimulatedWorld::are_parted(const std::vector<int>& members) const {
  const auto has_member_on = [&](int host) {
    return std::any_of(members.begin(), members.end(), [&](int member) { return processes_.at(member).host == host; });
  };
  return now_ < parted_until_ && has_member_on(parted_.first) && has_member_on(parted_.second);
}

void SimulatedWorld::part_hosts() {
  ++partings_;
  const int higher = draws_of_partings_.between(1, static_cast<int>(connections_.size()) - 1);
  parted_ = {draws_of_partings_.below(higher), higher};
  const int longest_ms = draws_of_partings_.chance(50) ? 3000 : 30'000;
  parted_until_ = now_ + std::chrono::milliseconds(draws_of_partings_.between(10, longest_ms));
  note("hosts " + std::to_string(parted_.first) + " and " + std::to_string(higher) + " lose each other");
}

// The agent of the host with the higher number has dialed the other for the whole time.
std::optional<Event> SimulatedWorld::on_unreached(int generation) {
  if (generation != generation_.number || generation_.is_cancelled || generation_.step >= 0) return std::nullopt;
  if (!are_parted(generation_.members)) return std::nullopt;
  send_up(parted_.second, within(0, 5),
          {.kind = EventKind::hosts_cut,
           .generation = generation,
           .what = "nobody answers",
           .host = parted_.second,
           .peer = parted_.first});
  return std::nullopt;
}

// What is sent during a cut comes after it, where the connection is still the same: the network sends it again.
void SimulatedWorld::send_up(int host, Microseconds delay, const Event& event) {
  Connection& link = connection(host);
  if (!link.is_up_at_agent) return;
  link.last_up = std::max({link.last_up, now_ + delay, link.up_cut_until});
  schedule(link.last_up - now_,
           {.happening = Happening::over_network, .member = host, .number = link.number, .event = keep(event)});
}

void SimulatedWorld::send_down(int host, Microseconds delay, int member, Happening happening, int number) {
  Connection& link = connection(host);
  if (!link.is_up_at_head) return;
  link.last_down = std::max({link.last_down, now_ + delay, link.down_cut_until});
  schedule(link.last_down - now_, {.happening = Happening::arrives,
                                   .member = host,
                                   .number = link.number,
                                   .channel = member,
                                   .inner = happening,
                                   .inner_number = number});
}

void SimulatedWorld::start_agent(int host) {
  connection(host).has_agent = true;
  connection(host).slowness = draws_.below(11);
  schedule(within(0, 300), {.happening = Happening::agent_dials, .member = host});
}

std::optional<Event> SimulatedWorld::happen_between_hosts(const Item& item) {
  const int host = item.member;
  switch (item.happening) {
    case Happening::over_network:
      return on_over_network(item);
    case Happening::arrives:
      on_arrives(item);
      break;
    case Happening::agent_starts:
      start_agent(host);
      break;
    case Happening::agent_dials:
      return on_dial(host);
    case Happening::agent_beats:
      on_agent_beats(host, item.number);
      break;
    case Happening::agent_hears:
      on_agent_hears(host, item);
      break;
    case Happening::head_beats:
      return on_head_beats(host, item.number);
    case Happening::head_hears:
      on_head_hears(host, item);
      break;
    case Happening::head_misses:
      if (connection(host).number == item.number) return lose_host(host, "the connection was closed");
      break;
    case Happening::hosts_part:
      part_hosts();
      break;
    case Happening::unreached:
      return on_unreached(item.number);
    case Happening::fence_passes:
      return on_fence_passes(host, item.number);
    default:
      break;
  }
  return std::nullopt;
}

// The agent tells which of its processes live and are in no generation. It has ended all others.
std::optional<Event> SimulatedWorld::on_dial(int host) {
  Connection& link = connection(host);
  if (!link.has_agent || link.is_up_at_agent) return std::nullopt;
  // A head that has not noticed the loss yet notices it when the agent dials.
  if (is_cut(host) || link.is_up_at_head) {
    schedule(kBetweenDials, {.happening = Happening::agent_dials, .member = host});
    if (is_cut(host)) return std::nullopt;
    return lose_host(host, "its agent dials again");
  }
  ++link.number;
  link.is_up_at_head = true;
  link.is_up_at_agent = true;
  link.last_up = now_;
  link.last_down = now_;
  link.of_agent = Beats(host_clock(host));
  link.of_head = Beats(now_);
  schedule({}, {.happening = Happening::agent_beats, .member = host, .number = link.number});
  schedule({}, {.happening = Happening::head_beats, .member = host, .number = link.number});
  note("host " + std::to_string(host) + " is connected");
  if (!std::exchange(link.was_ever_up, true)) return Event{.kind = EventKind::host_joined, .host = host};
  end_members(host, true);
  Event event{.kind = EventKind::host_returned, .host = host};
  for (auto& [member, process] : processes_) {
    if (process.host != host || process.life == Life::gone) continue;
    if (process.life != Life::idle || is_hung(process) || process.is_condemned) {
      // It cannot be killed, so the agent does not name it, and the head forgets it.
      process.life = Life::gone;
      continue;
    }
    event.members.push_back(member);
    event.steps.push_back(process.step);
    ++returned_;
  }
  link.is_lost = false;
  return event;
}

std::optional<Event> SimulatedWorld::on_over_network(const Item& item) {
  const Connection& link = connection(item.member);
  if (link.number != item.number || !link.is_up_at_head) return std::nullopt;
  return events_[static_cast<std::size_t>(item.event)];
}

void SimulatedWorld::on_arrives(const Item& item) {
  Connection& link = connection(item.member);
  if (link.number != item.number || !link.is_up_at_agent) return;
  const Process& process = processes_.at(item.channel);
  const bool is_fenced = host_clock(item.member) - link.of_agent.acknowledged() >= kTimes.fence;
  if (is_fenced && item.inner == Happening::told_to_join) {
    // The order is of before a cut. The head may give the host up at any moment, counting from what it heard then.
    // The agent answers for the process, which is not told of the generation.
    if (process.life != Life::idle) return;
    return send_up(
        item.member, {},
        {.kind = EventKind::checked_in, .member = item.channel, .generation = item.inner_number, .step = process.step});
  }
  if (item.inner == Happening::told_to_join) link.newest = std::max(link.newest, item.inner_number);
  schedule({}, {.happening = item.inner, .member = item.channel, .number = item.inner_number});
}

void SimulatedWorld::on_agent_beats(int host, int number) {
  Connection& link = connection(host);
  if (link.number != number || !link.is_up_at_agent) return;
  const Microseconds clock = host_clock(host);
  const auto alone = clock - link.of_agent.acknowledged();
  if (alone >= kTimes.fence) end_members(host, false);
  if (alone >= kTimes.host) {
    link.is_up_at_agent = false;
    return schedule(kBetweenDials, {.happening = Happening::agent_dials, .member = host});
  }
  const Beat beat = link.of_agent.next(clock);
  if (now_ >= link.up_cut_until) {
    schedule(within(0, 5), {.happening = Happening::head_hears, .member = host, .number = number, .beat = beat});
  }
  schedule(kTimes.beat, {.happening = Happening::agent_beats, .member = host, .number = number});
}

void SimulatedWorld::on_agent_hears(int host, const Item& item) {
  Connection& link = connection(host);
  if (link.number == item.number && link.is_up_at_agent) link.of_agent.take(item.beat, host_clock(host));
}

std::optional<Event> SimulatedWorld::on_head_beats(int host, int number) {
  Connection& link = connection(host);
  if (link.number != number || !link.is_up_at_head) return std::nullopt;
  if (now_ - link.of_head.acknowledged() >= kTimes.host) return lose_host(host, "it did not answer");
  const Beat beat = link.of_head.next(now_);
  if (now_ >= link.down_cut_until) {
    schedule(within(0, 5), {.happening = Happening::agent_hears, .member = host, .number = number, .beat = beat});
  }
  schedule(kTimes.beat, {.happening = Happening::head_beats, .member = host, .number = number});
  return std::nullopt;
}

void SimulatedWorld::on_head_hears(int host, const Item& item) {
  Connection& link = connection(host);
  if (link.number == item.number && link.is_up_at_head) link.of_head.take(item.beat, now_);
}

// The head acknowledges nothing from now on, so the fence of the agent counts from what the head last heard.
std::optional<Event> SimulatedWorld::lose_host(int host, const std::string& why) {
  Connection& link = connection(host);
  if (!std::exchange(link.is_up_at_head, false)) return std::nullopt;
  link.is_lost = true;
  const auto heard = std::chrono::duration_cast<Microseconds>(link.of_head.heard());
  const Microseconds fenced = heard + kTimes.until_fenced();
  schedule(std::max(Microseconds{}, fenced - now_),
           {.happening = Happening::fence_passes, .member = host, .number = link.number});
  return Event{.kind = EventKind::host_lost, .what = why, .host = host};
}

std::optional<Event> SimulatedWorld::on_fence_passes(int host, int number) {
  const Connection& link = connection(host);
  if (link.number != number || !link.is_lost) return std::nullopt;
  for (const auto& [member, process] : processes_) {
    if (process.host == host && (process.life == Life::inside || process.life == Life::saving)) {
      throw Violation{"process " + std::to_string(member) + " goes on after the fence of its host has run out"};
    }
  }
  return Event{.kind = EventKind::fence_passed, .host = host};
}

// An agent without a head ends its generation. Members keep their states; a process that is not ready yet, that hangs
// or that saves is ended within `stop`. A process that the kernel does not let go after that never comes back to its
// program, so it counts as ended.
void SimulatedWorld::end_members(int host, bool is_at_once) {
  connection(host).ended = connection(host).newest;
  for (auto& [member, process] : processes_) {
    if (process.host != host || process.life == Life::gone) continue;
    const bool obeys = process.life == Life::inside && !is_hung(process);
    const Microseconds stop = std::chrono::duration_cast<Microseconds>(kTimes.stop);
    if (obeys && is_at_once) {
      process.life = Life::idle;
    } else if (obeys) {
      schedule(within(0, 50), {.happening = Happening::leaves, .member = member, .number = process.generation});
    } else if (process.life != Life::idle && is_at_once) {
      process.life = Life::gone;
    } else if (process.life != Life::idle && !process.ended_by_agent_at) {
      process.ended_by_agent_at = now_ + stop;
      process.unkillable_until = std::min(process.unkillable_until, now_ + stop);
      schedule(stop, {.happening = Happening::dies, .member = member, .number = SIGKILL});
    }
  }
}

// The network is cut in one direction or both, or an agent dies with its processes and starts again.
void SimulatedWorld::disturb_host() {
  const int host = draws_.between(1, static_cast<int>(connections_.size()) - 1);
  Connection& link = connection(host);
  if (draws_.chance(70)) {
    ++cuts_;
    const Microseconds end = now_ + (draws_.chance(50) ? within(10, 900) : within(900, 5000));
    const int direction = draws_.below(3);
    if (direction != 0) link.up_cut_until = std::max(link.up_cut_until, end);
    if (direction != 1) link.down_cut_until = std::max(link.down_cut_until, end);
    return note("host " + std::to_string(host) + " is cut off, direction " + std::to_string(direction));
  }
  if (!std::exchange(link.has_agent, false)) return;
  ++agent_deaths_;
  note("the agent of host " + std::to_string(host) + " dies");
  for (auto& [member, process] : processes_) {
    if (process.host == host) process.life = Life::gone;
  }
  link.is_up_at_agent = false;
  // The system closes the connection, unless the head cannot hear that.
  if (now_ >= link.up_cut_until) {
    schedule(within(0, 5), {.happening = Happening::head_misses, .member = host, .number = link.number});
  }
  const Microseconds pause = within(50, 3000);
  schedule(pause, {.happening = Happening::agent_starts, .member = host});
}

}  // namespace holdfast::recovery
