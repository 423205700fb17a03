#pragma once

// The processes of a run and the watchdog's view of them, in virtual time: the world that a supervisor decides about.
//
// A process initialises, gets ready, joins generations, does steps there together with the other members, checks in
// when its generation is cancelled, and finishes after the last step. Each of these may take a while. A limited
// number of faults happen: processes die (alone, two or all at once), hang, are stopped and go on, report failures,
// cannot be killed for a while, or leave their generation unasked. Signals and requests for another size come,
// proposals of another assignment of shards, and reports that a process is slow. Messages of one process arrive in
// order, those of two processes in any order. A message that is under way when its sender dies may be lost.
// Everything follows from the seed.
//
// With several hosts, the head is on host 0 and reaches each other host by one connection. The network between them
// delays, and is cut for a while in one direction or both. Two hosts may also lose each other alone. Agents die with
// all processes of their host, and start again. Beats, fences and their times are those of hosts/beats.h; the clock of
// a host may be slow by a tenth.
//
// A step is a number: it is committed when each member's state has it. The file of the newest snapshot is a number,
// too.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "decide/supervisor.h"
#include "hosts/beats.h"
#include "unit/recovery/support/simulation_draws.h"

namespace holdfast::recovery {

using Microseconds = std::chrono::microseconds;

// Thrown when the supervisor breaks a promise; the text says which.
struct Violation {
  std::string what;
};

class SimulatedWorld {
 public:
  static constexpr std::int64_t kSnapshotEvery = 5;
  // For another host to be reached. Longer than the head takes to give a host up.
  static constexpr std::chrono::milliseconds kReachTime{1500};

  explicit SimulatedWorld(std::uint64_t seed, int hosts = 1);

  // The next event for the supervisor, at now(). No value when nothing will ever happen again.
  std::optional<Event> next();
  Moment now() const { return Moment{} + now_; }

  // Actions. They throw Violation when they ask for something that is not allowed.
  void start_process(int member, int host = 0);
  void kill_process(int member, bool has_failed);
  void open_generation(int generation, const std::vector<int>& members);
  void cancel_generation(int generation);
  void ask_to_stop();
  void ask_to_regroup();
  void set_timer(Moment moment);

  // Alive, not hung, and not asked to end.
  bool is_well(int member) const;
  // Among the processes that the supervisor can take for alive, even if only for a while.
  bool has_anyone_hung() const;
  std::int64_t steps() const { return steps_; }
  std::int64_t committed() const { return committed_; }
  // The step of the newest state. It is less than committed() while steps are computed again.
  std::int64_t newest() const { return line_; }
  std::int64_t saved() const { return saved_; }
  std::int64_t steps_computed_again() const { return computed_again_; }
  bool is_poisoned() const { return poison_ >= 0; }
  bool had_unrecoverable() const { return had_unrecoverable_; }
  bool had_unkillable() const { return had_unkillable_; }
  // From a kill to the death.
  Microseconds longest_end() const { return longest_end_; }
  // A program that leaves without having saved looks like one that was asked to stop and has saved.
  bool had_early_exit() const { return had_early_exit_; }
  int cuts() const { return cuts_; }
  int partings() const { return partings_; }
  int agent_deaths() const { return agent_deaths_; }
  int returned() const { return returned_; }
  bool is_timer_set_until(Moment moment) const { return timer_ && *timer_ <= moment - Moment{}; }
  std::vector<int> living() const;

  // Gets one line for each thing that happens; empty: not wanted.
  std::vector<std::string>* log = nullptr;

 private:
  enum class Life { initialising, idle, inside, finishing, saving, gone };

  struct Process {
    Life life = Life::initialising;
    int host = 0;
    int generation = -1;     // the generation that it is in, or was in last
    std::int64_t step = -1;  // of its state; -1: it has none
    bool was_ready = false;
    bool is_condemned = false;                        // it was asked to end
    std::optional<Microseconds> ended_by_agent_at{};  // for good, also where a kill does nothing for a while
    std::optional<Microseconds> dismissed_at{};       // though it had not failed
    bool is_hung = false;
    std::optional<Microseconds> goes_on{};  // when it is hung only for a while
    Microseconds unkillable_until{};
    Microseconds condemned_at{};
    Microseconds died_at{};
    Microseconds last_sent{};
    Microseconds last_received{};
    int channel = 0;  // what was sent on an earlier one is lost
  };

  struct Generation {
    int number = -1;
    std::vector<int> members{};
    bool is_cancelled = false;
    bool is_stop_asked = false;
    bool is_regroup_asked = false;
    std::int64_t step = -1;   // the step that all its members have; -1: none yet
    std::int64_t under = -1;  // the step whose updates are being applied
    int to_apply = 0;
  };

  // Between the head and the agent of a host.
  struct Connection {
    int number = 0;  // of the present one; what was sent on an earlier one is lost
    bool has_agent = true;
    bool is_up_at_head = false;
    bool is_up_at_agent = false;
    bool was_ever_up = false;
    bool is_lost = false;         // and the supervisor was told
    Microseconds up_cut_until{};  // from the agent to the head
    Microseconds down_cut_until{};
    Microseconds last_up{};  // messages of one connection arrive in order
    Microseconds last_down{};
    int slowness = 0;  // of the host's clock, in percent
    int newest = -1;   // generation of which the agent has told a process
    int ended = -1;    // the newest generation that the agent has ended
    Beats of_agent{BootTime{}};
    Beats of_head{BootTime{}};
  };

  enum class Happening {
    message,        // event, on the channel of the process
    over_network,   // event, to the head
    arrives,        // inner happening of a process, from the head
    agent_starts,   // the rest is of a host, which `member` has
    agent_dials,    //
    agent_beats,    // number: of the connection
    agent_hears,    // number: of the connection; beat
    head_beats,     // number: of the connection
    head_hears,     // number: of the connection; beat
    head_misses,    // number: of the connection, which was closed
    fence_passes,   // number: of the connection that was lost
    hosts_part,     // two hosts lose each other
    unreached,      // number: generation whose hosts do not all reach each other
    notice,         // event, by any other way
    timer,          // number: of the timer
    initialised,    //
    told_to_join,   // number: generation
    told_to_stop,   // number: generation
    told_to_group,  // number: generation
    leaves,         // number: generation, since it was cancelled
    synchronised,   // number: generation
    computed,       // number: generation
    applied,        // number: generation
    finishes,       //
    exits,          // number: exit code
    dies,           // number: signal
    watched,        // the hang detector looks
    fault,          //
  };

  struct Item {
    Microseconds at{};
    std::uint64_t order = 0;
    Happening happening = Happening::fault;
    int member = -1;
    int number = 0;
    int channel = 0;
    int event = -1;                      // index
    Happening inner = Happening::fault;  // of what comes over the network, for a process
    int inner_number = 0;
    Beat beat{};

    bool operator<(const Item& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };

  void schedule(Microseconds delay, Item item);
  void note(const std::string& line) const;
  int keep(const Event& event);
  void send(int member, const Event& event);
  void tell(Microseconds delay, const Event& event);
  void command(int member, Happening happening, int generation);

  std::optional<Event> happen(const Item& item);
  bool is_prevented(const Item& item);
  void on_initialised(int member);
  void on_told_to_join(int member, int generation);
  void on_leaves(int member, int generation);
  void on_synchronised(int generation);
  void on_computed(int generation);
  void on_applied(int member, int generation);
  void on_committed();
  void save_if_due(std::int64_t step);
  void on_exits(int member, int code);
  void on_dies(int member, int signal);
  std::optional<Event> on_watched(int member);

  // simulated_hosts.cpp
  Connection& connection(int host) { return connections_.at(static_cast<std::size_t>(host)); }
  Microseconds host_clock(int host) const;
  bool is_cut(int host) const;
  bool is_any_cut(const std::vector<int>& members) const;
  bool are_parted(const std::vector<int>& members) const;
  void part_hosts();
  std::optional<Event> on_unreached(int generation);
  void send_up(int host, Microseconds delay, const Event& event);
  void send_down(int host, Microseconds delay, int member, Happening happening, int number);
  void start_agent(int host);
  std::optional<Event> happen_between_hosts(const Item& item);
  std::optional<Event> on_dial(int host);
  std::optional<Event> on_over_network(const Item& item);
  void on_arrives(const Item& item);
  void on_agent_beats(int host, int number);
  void on_agent_hears(int host, const Item& item);
  std::optional<Event> on_head_beats(int host, int number);
  void on_head_hears(int host, const Item& item);
  std::optional<Event> lose_host(int host, const std::string& why);
  std::optional<Event> on_fence_passes(int host, int number);
  void end_members(int host, bool is_at_once);
  void disturb_host();

  bool takes_fault(int percent);
  void on_fault();
  void propose_assignment();
  void disturb(int member);
  void hang(int member);
  void make_unkillable(int member);
  void report_failure(int member);
  void leave_unasked(int member);
  std::optional<int> any_living();

  bool has_steps(const Process& process) const;
  bool is_hung(const Process& process) const;
  bool are_all_inside(const Generation& generation) const;
  void check_start(const Generation& generation) const;
  Microseconds within(int first_ms, int last_ms);

  SimulationDraws draws_;
  std::int64_t steps_;
  std::int64_t poison_ = -1;
  int faults_;  // that may still come
  Microseconds now_{};
  std::uint64_t order_ = 0;
  std::priority_queue<Item> items_;
  std::vector<Event> events_;
  std::map<int, Process> processes_;
  Generation generation_;
  std::vector<Connection> connections_;  // by host; that of host 0 is unused
  SimulationDraws draws_of_partings_;
  std::pair<int, int> parted_{0, 0};  // two hosts that do not reach each other, the lower number first
  Microseconds parted_until_{};
  int partings_ = 0;
  int cuts_ = 0;
  int agent_deaths_ = 0;
  int returned_ = 0;
  std::optional<Microseconds> timer_;
  int timer_number_ = 0;
  std::int64_t committed_ = 0;  // the furthest
  std::int64_t line_ = 0;       // the newest: less than the furthest while steps are computed again
  std::int64_t saved_ = 0;
  std::int64_t furthest_ = 0;
  std::int64_t computed_again_ = 0;
  bool had_unrecoverable_ = false;
  bool had_unkillable_ = false;
  Microseconds longest_end_{};
  bool had_early_exit_ = false;
};

}  // namespace holdfast::recovery
