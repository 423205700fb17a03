// Processes, their messages and their faults as one queue of happenings in virtual time. Draws come from one seed, so
// that a run that breaks a promise can be repeated. docs/decisions/testing.md

#include "unit/recovery/support/simulated_world.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

namespace holdfast::recovery {
namespace {

constexpr int kFaultsAtMost = 16;
constexpr int kLongestNewsMs = 100;
constexpr std::chrono::seconds kLongestSilence(1000);

}  // namespace

SimulatedWorld::SimulatedWorld(std::uint64_t seed, int hosts)
    : draws_(seed),
      steps_(draws_.between(1, 60)),
      faults_(draws_.below(kFaultsAtMost + 1)),
      connections_(static_cast<std::size_t>(hosts)),
      draws_of_partings_(seed + 1) {
  for (int host = 1; host < hosts; ++host) start_agent(host);
  // In a fifth of the runs, by draws of their own: the other runs stay as they were.
  const int partings = hosts > 1 && seed / 2 % 5 == 0 ? draws_of_partings_.between(1, 3) : 0;
  for (int i = 0; i < partings; ++i) {
    schedule(std::chrono::milliseconds(draws_of_partings_.below(3000)), {.happening = Happening::hosts_part});
  }
  if (draws_.chance(3)) poison_ = draws_.between(1, static_cast<int>(steps_));
  // About as long as the run would take without a fault. The other faults come while it recovers.
  const int duration_ms = 150 + 20 * static_cast<int>(steps_);
  const int planned = draws_.below(faults_ + 1);
  faults_ -= planned;
  for (int i = 0; i < planned; ++i) schedule(within(0, duration_ms), {.happening = Happening::fault});
}

// --- the queue

Microseconds SimulatedWorld::within(int first_ms, int last_ms) {
  return Microseconds(draws_.between(first_ms * 1000, last_ms * 1000));
}

void SimulatedWorld::schedule(Microseconds delay, Item item) {
  item.at = now_ + delay;
  item.order = ++order_;
  items_.push(item);
}

void SimulatedWorld::note(const std::string& line) const {
  if (log == nullptr) return;
  log->push_back(std::to_string(static_cast<double>(now_.count()) / 1e6) + " " + line);
}

int SimulatedWorld::keep(const Event& event) {
  events_.push_back(event);
  return static_cast<int>(events_.size()) - 1;
}

void SimulatedWorld::send(int member, const Event& event) {
  Process& process = processes_.at(member);
  if (process.host > 0) return send_up(process.host, within(0, 5), event);
  process.last_sent = std::max(process.last_sent, now_ + within(0, 5));
  schedule(process.last_sent - now_,
           {.happening = Happening::message, .member = member, .channel = process.channel, .event = keep(event)});
}

void SimulatedWorld::tell(Microseconds delay, const Event& event) {
  const auto process = processes_.find(event.member);
  if (!is_of_the_run(event.kind) && process != processes_.end() && process->second.host > 0) {
    return send_up(process->second.host, delay, event);
  }
  schedule(delay, {.happening = Happening::notice, .event = keep(event)});
}

void SimulatedWorld::command(int member, Happening happening, int generation) {
  Process& process = processes_.at(member);
  if (process.host > 0) return send_down(process.host, within(0, 5), member, happening, generation);
  process.last_received = std::max(process.last_received, now_ + within(0, 5));
  schedule(process.last_received - now_, {.happening = happening, .member = member, .number = generation});
}

std::optional<Event> SimulatedWorld::next() {
  while (!items_.empty()) {
    const Item item = items_.top();
    items_.pop();
    now_ = item.at;
    // Hosts beat as long as they live, so the queue never runs empty.
    if (connections_.size() > 1 && now_ > kLongestSilence) return std::nullopt;
    if (is_prevented(item)) continue;
    if (std::optional<Event> event = happen(item)) return event;
  }
  return std::nullopt;
}

// What a stopped process was about to do comes later. What a dead or hung process was about to do never comes.
bool SimulatedWorld::is_prevented(const Item& item) {
  static const std::set<Happening> of_a_process{
      Happening::initialised, Happening::told_to_join, Happening::told_to_stop, Happening::told_to_group,
      Happening::leaves,      Happening::applied,      Happening::finishes,     Happening::exits};
  if (item.member < 0 || !of_a_process.contains(item.happening)) return false;
  const Process& process = processes_.at(item.member);
  if (process.life == Life::gone) return true;
  if (!is_hung(process)) return false;
  if (item.happening == Happening::told_to_join) {
    schedule(within(1000, 3000), {.happening = Happening::watched, .member = item.member});
  }
  if (process.goes_on) schedule(std::max(Microseconds{}, *process.goes_on - now_), item);
  return true;
}

std::optional<Event> SimulatedWorld::happen(const Item& item) {
  switch (item.happening) {
    case Happening::message:
      if (item.channel != processes_.at(item.member).channel) break;
      return events_[static_cast<std::size_t>(item.event)];
    case Happening::notice:
      return events_[static_cast<std::size_t>(item.event)];
    case Happening::timer:
      if (item.number != timer_number_ && !draws_.chance(10)) break;  // a replaced timer may still fire
      if (item.number == timer_number_) timer_.reset();
      return Event{.kind = EventKind::timer};
    case Happening::initialised:
      on_initialised(item.member);
      break;
    case Happening::told_to_join:
      on_told_to_join(item.member, item.number);
      break;
    case Happening::told_to_stop:
      if (item.number == generation_.number) generation_.is_stop_asked = true;
      break;
    case Happening::told_to_group:
      if (item.number == generation_.number) generation_.is_regroup_asked = true;
      break;
    case Happening::leaves:
      on_leaves(item.member, item.number);
      break;
    case Happening::synchronised:
      on_synchronised(item.number);
      break;
    case Happening::computed:
      on_computed(item.number);
      break;
    case Happening::applied:
      on_applied(item.member, item.number);
      break;
    case Happening::finishes:
      send(item.member, {.kind = EventKind::finished, .member = item.member});
      schedule(within(0, 100), {.happening = Happening::exits, .member = item.member});
      break;
    case Happening::exits:
      on_exits(item.member, item.number);
      break;
    case Happening::dies:
      on_dies(item.member, item.number);
      break;
    case Happening::watched:
      return on_watched(item.member);
    case Happening::fault:
      on_fault();
      break;
    default:
      return happen_between_hosts(item);
  }
  return std::nullopt;
}

// --- actions

void SimulatedWorld::start_process(int member, int host) {
  if (!processes_.empty() && member <= processes_.rbegin()->first) {
    throw Violation{"process " + std::to_string(member) + " was there before"};
  }
  Process& process = processes_[member];
  process.host = host;
  if (host > 0 && !connection(host).is_up_at_head) throw Violation{"a start on a host that is not there"};
  if (takes_fault(4)) {
    process.life = Life::gone;
    return tell({}, {.kind = EventKind::start_failed, .member = member, .what = "no memory"});
  }
  const Microseconds to_get_ready = within(10, 150);
  if (host > 0) {
    // The order may be lost with the connection. Then the process never was.
    send_down(host, to_get_ready, member, Happening::initialised, 0);
  } else {
    schedule(to_get_ready, {.happening = Happening::initialised, .member = member});
  }
  if (takes_fault(4)) hang(member);
  if (takes_fault(4)) schedule(within(0, 150), {.happening = Happening::dies, .member = member, .number = SIGABRT});
}

void SimulatedWorld::kill_process(int member, bool has_failed) {
  const auto found = processes_.find(member);
  if (found == processes_.end()) throw Violation{"process " + std::to_string(member) + " never was"};
  Process& process = found->second;
  if (process.life == Life::gone) return;
  if (!std::exchange(process.is_condemned, true)) process.condemned_at = now_;
  if (!has_failed) process.dismissed_at = now_;
  if (takes_fault(2)) make_unkillable(member);
  const Microseconds delay = within(0, 5);
  // What a kill does for a while, on_dies() knows. The order itself arrives, and holds up no later one.
  if (process.host > 0) return send_down(process.host, delay, member, Happening::dies, SIGKILL);
  schedule(std::max(delay, process.unkillable_until - now_),
           {.happening = Happening::dies, .member = member, .number = SIGKILL});
}

void SimulatedWorld::open_generation(int generation, const std::vector<int>& members) {
  if (generation <= generation_.number)
    throw Violation{"generation " + std::to_string(generation) + " was there before"};
  if (!generation_.is_cancelled && generation_.number >= 0 && are_all_inside(generation_)) {
    throw Violation{"generation " + std::to_string(generation_.number) + " still lives"};
  }
  if (members.empty()) throw Violation{"a generation of nobody"};
  if (std::set<int>(members.begin(), members.end()).size() != members.size())
    throw Violation{"a member with two ranks"};
  generation_ = {.number = generation, .members = members};
  for (const int member : members) {
    const Process& process = processes_.at(member);
    if (process.life != Life::idle && process.life != Life::gone) {
      throw Violation{"process " + std::to_string(member) + " did not wait for a generation"};
    }
    command(member, Happening::told_to_join, generation);
  }
  check_start(generation_);
  if (connections_.size() > 1) schedule(kReachTime, {.happening = Happening::unreached, .number = generation});
  if (takes_fault(15)) schedule(within(0, 30), {.happening = Happening::fault});
}

// A member that has the newest state, is well and waits must be part of the generation. When no member has a state,
// no process may write files any more.
void SimulatedWorld::check_start(const Generation& generation) const {
  std::int64_t newest = -1;
  for (const int member : generation.members) newest = std::max(newest, processes_.at(member).step);
  for (const auto& [member, process] : processes_) {
    const bool could_write = process.step >= 0 && (process.life == Life::inside || process.life == Life::saving);
    if (newest < 0 && could_write) {
      throw Violation{"files are read that process " + std::to_string(member) + " might still write"};
    }
  }
  if (std::max(newest, saved_) >= line_) return;
  for (const auto& [member, process] : processes_) {
    const bool is_in_reach = process.host == 0 || connections_.at(process.host).is_up_at_head;
    const bool is_of_use = is_in_reach && (is_well(member) || (process.dismissed_at == now_ && !is_hung(process)));
    if (process.life == Life::idle && process.step >= line_ && is_of_use) {
      throw Violation{"steps are lost although process " + std::to_string(member) + " has them"};
    }
  }
}

void SimulatedWorld::cancel_generation(int generation) {
  if (generation != generation_.number) throw Violation{"another generation is cancelled than the newest"};
  if (generation_.is_cancelled) throw Violation{"a generation is cancelled twice"};
  generation_.is_cancelled = true;
  for (const int member : generation_.members) {
    const int host = processes_.at(member).host;
    if (host > 0) {
      send_down(host, within(3, 50), member, Happening::leaves, generation);
    } else {
      schedule(within(3, 50), {.happening = Happening::leaves, .member = member, .number = generation});
    }
  }
  if (takes_fault(15)) schedule(within(0, 100), {.happening = Happening::fault});
}

void SimulatedWorld::ask_to_stop() {
  for (const int member : generation_.members) command(member, Happening::told_to_stop, generation_.number);
}

void SimulatedWorld::ask_to_regroup() {
  for (const int member : generation_.members) command(member, Happening::told_to_group, generation_.number);
}

void SimulatedWorld::set_timer(Moment moment) {
  timer_ = std::chrono::duration_cast<Microseconds>(moment - Moment{});
  schedule(std::max(Microseconds{}, *timer_ - now_), {.happening = Happening::timer, .number = ++timer_number_});
}

// --- what processes do

void SimulatedWorld::on_initialised(int member) {
  processes_.at(member).life = Life::idle;
  processes_.at(member).was_ready = true;
  send(member, {.kind = EventKind::ready, .member = member});
}

void SimulatedWorld::on_told_to_join(int member, int generation) {
  if (generation != generation_.number) return;
  Process& process = processes_.at(member);
  // It was stopped meanwhile. Its agent gives it no memory of a generation that it has ended.
  if (process.host > 0 && generation <= connection(process.host).ended) {
    return send(member,
                {.kind = EventKind::checked_in, .member = member, .generation = generation, .step = process.step});
  }
  process.life = Life::inside;
  process.generation = generation;
  if (generation_.is_cancelled) {
    return schedule(within(0, 50), {.happening = Happening::leaves, .member = member, .number = generation});
  }
  if (are_all_inside(generation_))
    schedule(within(1, 20), {.happening = Happening::synchronised, .number = generation});
}

bool SimulatedWorld::are_all_inside(const Generation& generation) const {
  return std::all_of(generation.members.begin(), generation.members.end(), [&](int member) {
    const Process& process = processes_.at(member);
    return process.life == Life::inside && process.generation == generation.number;
  });
}

void SimulatedWorld::on_leaves(int member, int generation) {
  Process& process = processes_.at(member);
  if (process.life != Life::inside || process.generation != generation) return;
  process.life = Life::idle;
  send(member, {.kind = EventKind::checked_in, .member = member, .generation = generation, .step = process.step});
}

// All members get the newest state among them. Without one, the state of the files is read.
void SimulatedWorld::on_synchronised(int number) {
  if (number != generation_.number || generation_.is_cancelled || !are_all_inside(generation_)) return;
  if (is_any_cut(generation_.members) || are_parted(generation_.members)) {
    return schedule(within(20, 40), {.happening = Happening::synchronised, .number = number});
  }
  std::int64_t newest = -1;
  for (const int member : generation_.members) newest = std::max(newest, processes_.at(member).step);
  // A member that comes back from a lost host may have an older state than the files.
  if (newest < 0 || (connections_.size() > 1 && newest < saved_)) {
    newest = saved_;
    computed_again_ += std::max(std::int64_t{0}, line_ - newest);
    if (line_ - newest > kSnapshotEvery) throw Violation{"more steps are computed again than the files may lack"};
  } else if (newest < line_ && connections_.size() == 1) {
    throw Violation{"survivors go on at step " + std::to_string(newest) + " after step " + std::to_string(line_)};
  }
  line_ = newest;
  // The update of this step may have been the last of a generation that was cancelled. Then it has not been saved.
  save_if_due(newest);
  generation_.step = newest;
  committed_ = std::max(committed_, newest);
  for (const int member : generation_.members) processes_.at(member).step = newest;
  note("generation " + std::to_string(number) + " starts at step " + std::to_string(newest));
  if (newest == steps_) return on_committed();
  schedule(within(5, 30), {.happening = Happening::computed, .number = number});
}

void SimulatedWorld::on_computed(int number) {
  if (number != generation_.number || generation_.is_cancelled || !are_all_inside(generation_)) return;
  const auto hangs = [&](int member) { return is_hung(processes_.at(member)); };
  if (std::any_of(generation_.members.begin(), generation_.members.end(), hangs) || is_any_cut(generation_.members)) {
    return schedule(within(20, 40), {.happening = Happening::computed, .number = number});
  }
  // What a rank of one of the two has sent is not acknowledged, so it leaves.
  if (are_parted(generation_.members)) {
    const auto rank = std::find_if(generation_.members.begin(), generation_.members.end(),
                                   [this](int member) { return processes_.at(member).host == parted_.second; });
    return schedule(within(500, 1000), {.happening = Happening::leaves, .member = *rank, .number = number});
  }
  generation_.under = generation_.step + 1;
  if (generation_.under == poison_) {
    const int victim =
        generation_.members[static_cast<std::size_t>(draws_.below(static_cast<int>(generation_.members.size())))];
    return schedule({}, {.happening = Happening::dies, .member = victim, .number = SIGSEGV});
  }
  generation_.to_apply = static_cast<int>(generation_.members.size());
  for (const int member : generation_.members) {
    const Microseconds lag = draws_.chance(80) ? Microseconds{} : within(0, 3);
    schedule(lag, {.happening = Happening::applied, .member = member, .number = number});
  }
}

// An update that was begun is finished. An update that was not begun when the generation was cancelled is left out.
void SimulatedWorld::on_applied(int member, int number) {
  Process& process = processes_.at(member);
  if (process.generation != number || number != generation_.number || process.life != Life::inside) return;
  if (generation_.is_cancelled && draws_.chance(50)) return;
  process.step = generation_.under;
  if (--generation_.to_apply > 0 || generation_.is_cancelled) return;
  generation_.step = generation_.under;
  if (generation_.step != line_ + 1) {
    throw Violation{"step " + std::to_string(generation_.step) + " is committed after step " + std::to_string(line_)};
  }
  on_committed();
}

void SimulatedWorld::save_if_due(std::int64_t step) {
  if (step % kSnapshotEvery == 0 || step == steps_) saved_ = std::max(saved_, step);
}

void SimulatedWorld::on_committed() {
  const std::int64_t step = generation_.step;
  line_ = step;
  committed_ = std::max(committed_, step);
  note("step " + std::to_string(step) + " of generation " + std::to_string(generation_.number));
  save_if_due(step);
  if (step > furthest_ && draws_.chance(50)) {
    furthest_ = step;
    tell(within(0, 10), {.kind = EventKind::progressed, .generation = generation_.number, .step = step});
  }
  const int number = generation_.number;
  for (const int member : generation_.members) {
    Process& process = processes_.at(member);
    if (process.life != Life::inside) continue;
    if (step == steps_) {
      process.life = Life::finishing;
      schedule(within(0, 20), {.happening = Happening::finishes, .member = member});
    } else if (generation_.is_stop_asked) {
      process.life = Life::saving;
      schedule(within(0, 300), {.happening = Happening::exits, .member = member, .number = draws_.chance(50) ? 75 : 0});
    } else if (generation_.is_regroup_asked) {
      schedule(within(0, 5), {.happening = Happening::leaves, .member = member, .number = number});
    }
  }
  const bool goes_on = step != steps_ && !generation_.is_stop_asked && !generation_.is_regroup_asked;
  if (goes_on) schedule(within(5, 30), {.happening = Happening::computed, .number = number});
}

// When several members save after the same step, the first makes the savepoint.
void SimulatedWorld::on_exits(int member, int code) {
  Process& process = processes_.at(member);
  if (process.life == Life::saving) saved_ = std::max(saved_, process.step);
  process.life = Life::gone;
  note("process " + std::to_string(member) + " exits with " + std::to_string(code));
  // The kernel reports it when everything that was sent can be read, or much later.
  const Microseconds at_least = std::max(Microseconds{}, process.last_sent - now_);
  tell(at_least + within(0, 50), {.kind = EventKind::exited, .member = member, .exit_code = code});
}

void SimulatedWorld::on_dies(int member, int signal) {
  Process& process = processes_.at(member);
  if (process.life == Life::gone) return;
  if (now_ < process.unkillable_until) {
    return schedule(process.unkillable_until - now_,
                    {.happening = Happening::dies, .member = member, .number = signal});
  }
  const std::int64_t step = process.life == Life::inside && process.step >= 0 ? process.step + 1 : -1;
  const bool is_joining = !has_steps(process);
  process.life = Life::gone;
  process.died_at = now_;
  if (process.is_condemned) longest_end_ = std::max(longest_end_, now_ - process.condemned_at);
  note("process " + std::to_string(member) + " dies by signal " + std::to_string(signal));
  if (draws_.chance(50)) ++process.channel;
  if (process.was_ready && draws_.chance(80)) {
    tell(within(0, 3), {.kind = EventKind::died, .member = member, .step = step, .is_joining = is_joining});
  }
  tell(within(0, kLongestNewsMs),
       {.kind = EventKind::exited, .member = member, .signal = signal, .step = step, .is_joining = is_joining});
}

std::optional<Event> SimulatedWorld::on_watched(int member) {
  const Process& process = processes_.at(member);
  const std::vector<int>& members = generation_.members;
  const bool is_asked_for = std::find(members.begin(), members.end(), member) != members.end();
  if (process.life == Life::gone || (process.life == Life::idle && !is_asked_for)) return std::nullopt;
  if (!is_hung(process)) return std::nullopt;
  const std::int64_t step = process.life == Life::inside && process.step >= 0 ? process.step + 1 : -1;
  return Event{.kind = EventKind::hang_detected,
               .member = member,
               .what = "no progress",
               .step = step,
               .is_joining = !has_steps(process)};
}

// --- faults

bool SimulatedWorld::takes_fault(int percent) {
  if (faults_ == 0 || !draws_.chance(percent)) return false;
  --faults_;
  return true;
}

std::vector<int> SimulatedWorld::living() const {
  std::vector<int> members;
  for (const auto& [member, process] : processes_) {
    if (process.life != Life::gone) members.push_back(member);
  }
  return members;
}

std::optional<int> SimulatedWorld::any_living() {
  const std::vector<int> members = living();
  if (members.empty()) return std::nullopt;
  return members[static_cast<std::size_t>(draws_.below(static_cast<int>(members.size())))];
}

void SimulatedWorld::on_fault() {
  if (connections_.size() > 1 && draws_.chance(40)) return disturb_host();
  const int kind = draws_.below(100);
  if (kind < 5) {
    for (const int member : living()) schedule({}, {.happening = Happening::dies, .member = member, .number = SIGKILL});
  } else if (kind < 8) {
    tell({}, {.kind = EventKind::stop_requested, .signal = SIGTERM});
    if (draws_.chance(20)) tell(within(0, 1000), {.kind = EventKind::stop_requested, .signal = SIGTERM});
  } else if (kind < 18) {
    tell({}, {.kind = EventKind::scale_requested, .count = draws_.below(6)});
  } else if (kind < 30) {
    propose_assignment();
  } else if (kind < 36) {
    if (const std::optional<int> member = any_living()) {
      tell(within(0, 20), {.kind = EventKind::slow, .member = *member, .what = "it takes twice as long"});
    }
  } else {
    const int victims = draws_.chance(20) ? 2 : 1;
    for (int i = 0; i < victims; ++i) {
      if (const std::optional<int> member = any_living()) disturb(*member);
    }
  }
}

// The generation may have ended when this event comes.
void SimulatedWorld::propose_assignment() {
  Event event{.kind = EventKind::assignment_proposed, .generation = generation_.number, .what = "one is slow"};
  for (std::size_t i = 0; i < generation_.members.size(); ++i) event.shards.push_back(draws_.between(1, 4));
  tell(within(0, 20), event);
}

void SimulatedWorld::disturb(int member) {
  const int kind = draws_.below(100);
  note("fault " + std::to_string(kind) + " of process " + std::to_string(member));
  if (kind < 45) {
    schedule({}, {.happening = Happening::dies, .member = member, .number = SIGKILL});
  } else if (kind < 65) {
    hang(member);
  } else if (kind < 78) {
    report_failure(member);
  } else if (kind < 85) {
    had_early_exit_ = true;
    schedule({}, {.happening = Happening::exits, .member = member, .number = draws_.below(2)});
  } else if (kind < 90) {
    tell({}, {.kind = EventKind::hang_detected, .member = member, .what = "a false alarm"});
  } else if (kind < 95) {
    make_unkillable(member);
  } else {
    leave_unasked(member);
  }
}

void SimulatedWorld::hang(int member) {
  Process& process = processes_.at(member);
  const bool is_for_ever = process.is_hung && !process.goes_on;
  process.is_hung = true;
  process.goes_on.reset();
  if (!is_for_ever && draws_.chance(50)) process.goes_on = now_ + within(1, 4000);
  schedule(within(1000, 3000), {.happening = Happening::watched, .member = member});
}

void SimulatedWorld::make_unkillable(int member) {
  had_unkillable_ = true;
  Process& process = processes_.at(member);
  process.unkillable_until = now_ + (draws_.chance(80) ? within(1, 5000) : within(1, 100'000));
  if (process.ended_by_agent_at)
    process.unkillable_until = std::min(process.unkillable_until, *process.ended_by_agent_at);
  hang(member);
}

void SimulatedWorld::report_failure(int member) {
  const bool is_unrecoverable = draws_.chance(10);
  had_unrecoverable_ = had_unrecoverable_ || is_unrecoverable;
  const Process& process = processes_.at(member);
  const bool is_in_a_step = process.life == Life::inside && process.step >= 0;
  send(member, {.kind = EventKind::failure_reported,
                .member = member,
                .what = "an exception",
                .is_unrecoverable = is_unrecoverable,
                .step = is_in_a_step ? process.step + 1 : -1,
                .is_joining = !has_steps(process)});
  schedule(within(0, 50), {.happening = Happening::exits, .member = member, .number = 1});
}

void SimulatedWorld::leave_unasked(int member) {
  const Process& process = processes_.at(member);
  schedule({}, {.happening = Happening::leaves, .member = member, .number = process.generation});
}

bool SimulatedWorld::is_well(int member) const {
  const Process& process = processes_.at(member);
  return process.life != Life::gone && !is_hung(process) && !process.is_condemned;
}

// Whether its generation has reached its steps.
bool SimulatedWorld::has_steps(const Process& process) const {
  return process.generation == generation_.number && generation_.step >= 0;
}

bool SimulatedWorld::is_hung(const Process& process) const {
  return process.is_hung && (!process.goes_on || now_ < *process.goes_on);
}

bool SimulatedWorld::has_anyone_hung() const {
  return std::any_of(processes_.begin(), processes_.end(), [this](const auto& entry) {
    // The supervisor learns of its end a little later.
    const bool is_there =
        entry.second.life != Life::gone || now_ < entry.second.died_at + std::chrono::milliseconds(kLongestNewsMs);
    return entry.second.is_hung && is_there;
  });
}

}  // namespace holdfast::recovery
