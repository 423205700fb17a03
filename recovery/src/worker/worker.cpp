// The worker's side of the channel. A thread of its own receives all messages, so that requests and the watchdog's
// death are noticed while training computes. The same thread holds the robust mutex of the life page, by which the
// watchdog sees the death of this process at once. docs/decisions/recovery.md

#include "holdfast/recovery/worker.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "channel/channel.h"
#include "channel/messages.h"
#include "detect/life_page.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/threads.h"
#include "holdfast/recovery/watchdog_options.h"
#include "journal/journal.h"
#include "memory/fence.h"
#include "process/crash_handler.h"
#include "process/signals.h"
#include "worker/inheritance.h"

namespace holdfast::recovery {
namespace {

constexpr int kExitWithoutWatchdog = 70;
// The watchdog reads within milliseconds, unless it was stopped by a signal.
constexpr std::chrono::seconds kSendTimeout(10);
// A message or the watchdog's death ends the wait at once. The period only bounds one call of poll(2).
constexpr std::chrono::seconds kListenPeriod(1);
// The listener ends this process when the watchdog is gone.
constexpr std::chrono::hours kAsLongAsTheWatchdogLives(24 * 365);

[[noreturn]] void end_process(const std::string& why) {
  log(LogLevel::error, fmt::format("replica: {}; this process ends itself", why));
  // Not exit(): its handlers would run next to the thread that trains, and might wait for it.
  ::_exit(kExitWithoutWatchdog);
}

// Where a process is among the hosts of its generation.
struct RankOnHost {
  int host = 0;   // its number among the hosts of the generation
  int rank = 0;   // within the host
  int ranks = 0;  // of the host
};

nlohmann::json parse_or_quote(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

}  // namespace

bool is_worker() {
  return inheritance().has_value();
}

// The listener also holds the life page. It lives until the Worker or the process ends.
struct Worker::Connection {
  Connection(FileDescriptor channel_end, FileDescriptor life_page, FileDescriptor lock_file,
             std::optional<FenceView> fence_of_host)
      : channel(std::move(channel_end)),
        life(SharedMemory::map_writable(std::move(life_page), LifePage::kBytes + CrashPage::kBytes)),
        page(LifePage::find(life)),
        lock(std::move(lock_file)),
        fence(std::move(fence_of_host)),
        listener(start_listener()) {}

  ~Connection() {
    // Before the channel closes. Otherwise the listener would take the end for the watchdog's death and end the
    // process.
    is_leaving = true;
    // Shutting the channel down wakes the listener.
    channel.shut_down();
    listener.join();
  }

  // Without the listener only this message can tell the watchdog why the process leaves.
  std::thread start_listener() {
    try {
      return start_thread("the thread that listens to the watchdog", [this] { listen(); });
    } catch (const Error& error) {
      const auto body = [&error] {
        return nlohmann::json{{"kind", kFailure}, {"what", error.what()}, {"is_unrecoverable", false}};
      };
      try_to_send(body, "its cause");
      throw;
    }
  }

  void listen() {
    // The mutex must be held before kJoined says that its owner's death can be watched.
    page.hold();
    try {
      channel.send({.body = {{"kind", kJoined}}}, Deadline::after(kSendTimeout));
      while (!channel.is_closed()) {
        channel.wait_until_readable(Deadline::after(kListenPeriod));
        while (std::optional<Message> message = channel.try_receive()) take(std::move(*message));
      }
    } catch (const std::exception& error) {
      if (!is_leaving) end_process(error.what());
    }
    if (!is_leaving) end_process("the watchdog is gone");
    page.let_go();
  }

  void take(Message message) {
    const std::string kind = message.body.at("kind").get<std::string>();
    const std::scoped_lock guard(mutex);
    if (kind == kStop) {
      requests.stop = true;
    } else if (kind == kRegroup) {
      requests.regroup_generation = message.body.at("generation").get<int>();
    } else if (kind == kArena) {
      const ArenaNumber which = arena_number_of(message.body);
      // Kept by number: a reply may come after the wait for it was given up, and must not answer a later exchange.
      arena_replies.insert_or_assign(which, std::move(message));
    } else if (kind == kMakeSavepoint) {
      requests.savepoint = message.body.at("number").get<int>();
    } else if (kind == kSnapshotMemory) {
      snapshot_memory = std::move(message.descriptors.at(0));
    } else if (kind == kWelcome) {
      welcome = std::move(message);
    } else if (kind == kHello) {
      hello = parse_hello(message.body);
    }
    has_changed.notify_all();
  }

  // Peers may take long. The phase shows that it is not this replica that hangs.
  template <typename Condition>
  void wait_for_peers(const Condition& condition, const std::string& what, Deadline deadline,
                      const LongWait& long_wait = {}) {
    // The phase before the wait comes back after it, so that the time of both is counted where it belongs.
    const Phase phase = page.phase;
    const std::int64_t step = page.step;
    enter(Phase::waiting_for_peers, step);
    std::unique_lock guard(mutex);
    if (long_wait.then) {
      const auto first = std::min(deadline.moment(), Deadline::after(long_wait.after).moment());
      if (!has_changed.wait_until(guard, first, condition)) {
        // It may ask the watchdog for something, whose answer needs the mutex.
        guard.unlock();
        long_wait.then();
        guard.lock();
      }
    }
    const bool is_met = has_changed.wait_until(guard, deadline.moment(), condition);
    enter(phase, step);
    if (!is_met) throw Error(ErrorCode::deadline_exceeded, fmt::format("{} took longer than it may", what));
  }

  // The watchdog sends it at the start of the process, so only a stopped watchdog makes this wait long.
  void wait_for_hello(Deadline deadline) {
    std::unique_lock guard(mutex);
    if (!has_changed.wait_until(guard, deadline.moment(), [this] { return hello.has_value(); })) {
      throw Error(ErrorCode::deadline_exceeded,
                  "the watchdog did not answer in time; is it stopped, or its machine busy?");
    }
    member = {.generation = -1, .rank = hello->intended_rank, .size = hello->replicas, .shards = {}};
    std::vector<Fault> parsed;
    // The watchdog has checked the faults against the ranks of then. The run may have fewer replicas by now.
    for (const std::string& fault : hello->faults) parsed.push_back(parse_fault(fault, kMaxReplicas));
    faults.emplace(std::move(parsed), Faults::Process{.rank = hello->intended_rank,
                                                      .generation = -1,
                                                      .watchdog_pid = hello->watchdog_pid,
                                                      .run_directory = hello->run_directory,
                                                      .hooks = fault_hooks()});
  }

  Faults::Hooks fault_hooks() {
    return {.close_channel = [this] { channel.shut_down(); },
            // Past the Channel, which would make a whole message of these bytes. Not waiting: the fault is not about
            // a full buffer.
            .send_garbage =
                [this](std::span<const std::byte> bytes) {
                  ::send(channel.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
                },
            .stop_beats =
                [this](std::optional<std::chrono::milliseconds> duration) {
                  silent_until = duration ? Deadline::Clock::now() + *duration : Deadline::Clock::time_point::max();
                }};
  }

  // True while a fault suppresses heartbeats.
  bool is_silent() const {
    // Read at each heartbeat, and nothing else depends on it. So the cheapest order is enough.
    const Deadline::Clock::time_point until = silent_until.load(std::memory_order_relaxed);
    return until != Deadline::Clock::time_point{} && Deadline::Clock::now() < until;
  }

  void enter(Phase phase, std::int64_t step) {
    if (!is_silent()) page.enter(phase, step);
  }

  void wait_for_welcome(Deadline deadline, const LongWait& long_wait) {
    wait_for_peers([this] { return welcome.has_value(); }, "the start of the next generation", deadline, long_wait);
    const std::scoped_lock guard(mutex);
    member = welcome->body.get<Welcome>();
    // A request to regroup names its generation. One that comes late is about an ended generation and is not met.
    requests.own_generation = member.generation;
    snapshots = std::move(welcome->descriptors);
    welcome.reset();
    // Faults name ranks, and this process may have another rank than before.
    faults->move_to(member.rank, member.generation);
  }

  RankOnHost rank_on_host() const {
    if (member.host_ranks.empty()) return {.host = 0, .rank = member.rank, .ranks = member.size};
    RankOnHost own{.host = 0, .rank = member.rank};
    for (const int ranks : member.host_ranks) {
      own.ranks = ranks;
      if (own.rank < ranks) return own;
      own.rank -= ranks;
      ++own.host;
    }
    throw Error(ErrorCode::input_output, fmt::format("the hosts of generation {} have {} ranks, and this process is "
                                                     "rank {}",
                                                     member.generation, member.rank - own.rank, member.rank));
  }

  // Replies of earlier generations are of no use to any caller.
  void forget_arenas() {
    const std::scoped_lock guard(mutex);
    arena_replies.clear();
    next_arena = 0;
  }

  Message wait_for_arenas(ArenaNumber which, Deadline deadline) {
    wait_for_peers([this, which] { return arena_replies.contains(which); },
                   fmt::format("the exchange of shared memory number {} between all replicas", which.number), deadline);
    const std::scoped_lock guard(mutex);
    return std::move(arena_replies.extract(which).mapped());
  }

  FileDescriptor wait_for_snapshot_memory(Deadline deadline) {
    std::unique_lock guard(mutex);
    if (!has_changed.wait_until(guard, deadline.moment(), [this] { return snapshot_memory.has_value(); })) {
      throw Error(ErrorCode::deadline_exceeded, "the watchdog did not give memory for snapshots in time");
    }
    FileDescriptor descriptor = std::move(*snapshot_memory);
    snapshot_memory.reset();
    return descriptor;
  }

  // Memory that was seen in the exchange before keeps its mapping, so that its pages need not be mapped again.
  std::vector<std::shared_ptr<const SharedMemory>> views_of(std::span<FileDescriptor> descriptors) {
    if (descriptors.empty()) return {};
    std::vector<std::shared_ptr<const SharedMemory>> now;
    for (FileDescriptor& descriptor : descriptors) {
      const auto known =
          std::find_if(views.begin(), views.end(), [&](const auto& view) { return view->is_same_as(descriptor); });
      now.push_back(known != views.end()
                        ? *known
                        : std::make_shared<SharedMemory>(SharedMemory::map_read_only(std::move(descriptor))));
    }
    views = now;
    return now;
  }

  void send_message(const Message& message) const { channel.send(message, Deadline::after(kSendTimeout)); }
  void send(nlohmann::json body) const { send_message({.body = std::move(body)}); }

  // Sends what body() returns. `what` is the subject of the sentence that is logged when that fails. A body is made
  // within the try block, because memory may be what is missing.
  template <class Body>
  void try_to_send(const Body& body, const char* what, LogLevel level = LogLevel::warning) const noexcept {
    try {
      send(body());
    } catch (const std::exception& error) {
      log(level, fmt::format("replica: {} could not be reported to the watchdog: {}", what, error.what()));
    }
  }

  void report_failure(const std::string& what, bool is_unrecoverable, bool is_thrown) const noexcept {
    const auto body = [&] {
      nlohmann::json failure{{"kind", kFailure}, {"what", what}, {"is_unrecoverable", is_unrecoverable}};
      // An exception of the program, not of Holdfast. The run's last sentence then says that the training function
      // threw it.
      if (is_thrown) failure["is_thrown"] = true;
      return failure;
    };
    try_to_send(body, "a failure", LogLevel::error);
  }

  Channel channel;  // received from by the listener only
  SharedMemory life;
  LifePage& page;
  CrashHandler crash_handler{CrashPage::find(life)};
  FileDescriptor lock;  // keeps the run directory locked until the last replica is gone
  const std::optional<FenceView> fence;

  // For the thread that trains.
  Welcome member;
  std::optional<Faults> faults;
  std::vector<FileDescriptor> snapshots;
  int next_arena = 0;
  std::vector<std::shared_ptr<const SharedMemory>> views;  // of the memory that peers showed in the newest exchange

  // Worker::Requests, as the listener has received them.
  struct {
    std::atomic<bool> stop = false;
    std::atomic<int> regroup_generation = -1;  // the generation that is to regroup
    std::atomic<int> own_generation = -1;      // member.generation, for any thread
    std::atomic<int> savepoint = 0;
  } requests;
  std::atomic<bool> is_leaving = false;
  std::atomic<Deadline::Clock::time_point> silent_until{};  // zero: never silent

  std::mutex mutex;
  std::condition_variable has_changed;
  // Guarded by mutex.
  std::optional<Hello> hello;  // constant once it has arrived
  std::optional<Message> welcome;
  std::map<ArenaNumber, Message> arena_replies;
  std::optional<FileDescriptor> snapshot_memory;

  std::mutex background_mutex;
  std::uint64_t background_works = 0;  // guarded by background_mutex; counts them

  std::thread listener;  // last: it uses all other members
};

std::unique_ptr<Worker> Worker::join(Deadline deadline) {
  if (!is_worker()) {
    throw Error(ErrorCode::invalid_argument,
                "this process cannot join a run: it was not started by a watchdog; start the program with `holdfast "
                "run` or supervise()");
  }
  static std::atomic<bool> has_joined = false;
  if (has_joined.exchange(true)) {
    throw Error(ErrorCode::invalid_argument,
                "this process cannot join its run twice; use the Worker of the first Worker::join()");
  }
  // The descriptors are adopted once; a second Worker would close them under the first.
  const Inheritance& numbers = *inheritance();
  // The watchdog had the signals ignored for output of the program before this call. Programs that this process
  // starts are to have the default.
  take_failing_writes_back();
  outlive_failing_writes();
  leave_stops_to_the_watchdog();
  FileDescriptor channel = adopt(numbers[0]);
  FileDescriptor life = adopt(numbers[1]);
  FileDescriptor lock = adopt(numbers[2]);
  std::optional<FenceView> fence;
  if (numbers[3] >= 0) fence.emplace(adopt(numbers[3]));
  auto connection =
      std::make_unique<Connection>(std::move(channel), std::move(life), std::move(lock), std::move(fence));
  connection->wait_for_hello(deadline);
  if (const auto level = connection->hello->log_level) set_log_level(*level);
  return std::unique_ptr<Worker>(new Worker(std::move(connection)));
}

Worker::Worker(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

Worker::~Worker() = default;

void Worker::enter_generation(Deadline deadline, std::int64_t state_step, const LongWait& long_wait) {
  const int left = generation();
  connection_->forget_arenas();
  // Until it enters a step again, no step is blamed for its death.
  if (left >= 0) connection_->page.join_state = JoinState::joining_again;
  if (left < 0) {
    // A spare may wait for days until it is needed, so the caller's deadline does not hold here.
    connection_->send({{"kind", kReady}});
    deadline = Deadline::after(kAsLongAsTheWatchdogLives);
  } else {
    connection_->send({{"kind", kCheckedIn}, {"generation", left}, {"step", state_step}});
  }
  connection_->wait_for_welcome(deadline, long_wait);
}

int Worker::rank() const {
  return connection_->member.rank;
}
int Worker::size() const {
  return connection_->member.size;
}
int Worker::generation() const {
  return connection_->member.generation;
}
const std::vector<int>& Worker::assigned_shards() const {
  return connection_->member.shards;
}
const std::vector<int>& Worker::host_ranks() const {
  return connection_->member.host_ranks;
}
bool Worker::has_own_folder() const {
  return connection_->hello->has_own_folder;
}

std::optional<int> Worker::cores() const {
  const int cores = connection_->hello->cores;
  return cores > 0 ? std::optional(cores) : std::nullopt;
}

const std::string& Worker::run_directory() const {
  return connection_->hello->run_directory;
}
const std::string& Worker::config() const {
  return connection_->hello->config;
}
std::chrono::milliseconds Worker::patience() const {
  return connection_->hello->patience;
}
bool Worker::has_fence() const {
  return connection_->fence.has_value();
}
bool Worker::may_change() const {
  return !has_fence() || !connection_->fence->has_run_out();
}
std::vector<Restart> Worker::restarts() const {
  return read_restarts(journal_path(run_directory()));
}
const Faults& Worker::faults() const {
  return *connection_->faults;
}

Worker::Arena Worker::exchange_arenas(std::size_t bytes, Deadline deadline, const SharedMemory* shows) {
  const ArenaNumber which{.generation = generation(), .number = connection_->next_arena++};
  Message request{.body = arena_message(kArenaRequest, which, bytes)};
  if (shows != nullptr) request.descriptors.push_back(shows->read_only_descriptor());
  connection_->send_message(request);
  Message reply = connection_->wait_for_arenas(which, deadline);
  check_arena_reply(reply.body);
  // The reply has one arena for each rank of this host, then what each of them shows, and then connections.
  const RankOnHost own = connection_->rank_on_host();
  const auto ranks = static_cast<std::size_t>(own.ranks);
  const auto links = reply.body.value("links", std::size_t{0});
  const std::size_t memories = ranks * (shows != nullptr ? 2 : 1);
  HOLDFAST_ASSERT(reply.descriptors.size() == memories + links);
  Arena arena;
  arena.all.resize(ranks);
  arena.shown = connection_->views_of(std::span(reply.descriptors).subspan(ranks, memories - ranks));
  for (std::size_t next = memories; next < reply.descriptors.size(); ++next) {
    if (static_cast<int>(arena.links.size()) == own.host) arena.links.emplace_back();
    arena.links.push_back(std::move(reply.descriptors[next]));
  }
  if (links > 0 && own.host == static_cast<int>(links)) arena.links.emplace_back();
  for (int peer = 0; peer < own.ranks; ++peer) {
    FileDescriptor& descriptor = reply.descriptors.at(peer);
    if (peer == own.rank) {
      arena.own = SharedMemory::map_writable(std::move(descriptor), bytes);
    } else {
      arena.all.at(peer) = SharedMemory::map_read_only(std::move(descriptor), bytes);
    }
  }
  return arena;
}

// Checked here too, so that the program learns of its mistake where it makes it.
void Worker::report_work(const ReplicaWork& work) {
  check_work(work);
  connection_->send(work_message(generation(), work));
}

MemorySnapshots Worker::request_snapshot_memory(std::size_t capacity_bytes, Deadline deadline) {
  const std::size_t bytes = MemorySnapshots::memory_bytes(capacity_bytes);
  connection_->send({{"kind", kSnapshotRequest}, {"bytes", bytes}});
  return MemorySnapshots(SharedMemory::map_writable(connection_->wait_for_snapshot_memory(deadline), bytes));
}

std::vector<SharedMemory> Worker::take_snapshot_memories() {
  std::vector<SharedMemory> memories;
  for (FileDescriptor& descriptor : connection_->snapshots) {
    memories.push_back(SharedMemory::map_read_only(std::move(descriptor)));
  }
  connection_->snapshots.clear();
  return memories;
}

void Worker::enter(Phase phase, std::int64_t step) {
  connection_->enter(phase, step);
  // In these phases a process is still on its way to the steps of its generation.
  if (phase == Phase::starting || phase == Phase::regrouping || phase == Phase::waiting_for_peers) return;
  // From here on a death of this process counts against the step that it is in.
  connection_->page.join_state.store(JoinState::in_steps, std::memory_order_relaxed);
}
void Worker::regroup() {
  enter(Phase::regrouping, connection_->page.step);
}
void Worker::beat() {
  if (!connection_->is_silent()) connection_->page.beat();
}
// These are not heartbeats of the thread that trains, so faults have no effect on them.
void Worker::enter_background(const BackgroundWork& work) {
  const std::scoped_lock guard(connection_->background_mutex);
  const std::uint64_t number = ++connection_->background_works;
  connection_->page.enter_background({.number = number, .bytes = work.bytes, .is_callback = work.is_callback},
                                     work.what);
}
void Worker::leave_background() {
  const std::scoped_lock guard(connection_->background_mutex);
  connection_->page.enter_background({}, "");
}
void Worker::count_samples(std::int64_t samples) {
  connection_->page.samples.fetch_add(static_cast<std::uint64_t>(samples), std::memory_order_relaxed);
}
Worker::Requests Worker::requests() const {
  return {.stop = connection_->requests.stop,
          // A number and not a flag: a flag would have to be cleared at each generation, and could clear a newer
          // request.
          .regroup = connection_->requests.regroup_generation == connection_->requests.own_generation,
          .savepoint = connection_->requests.savepoint};
}

void Worker::report_failure(const std::string& what, bool is_unrecoverable) noexcept {
  connection_->report_failure(what, is_unrecoverable, false);
}

void Worker::report_exception(const std::string& what) noexcept {
  connection_->report_failure(what, false, true);
}

void Worker::report_other_choices(const std::string& what) noexcept {
  const auto body = [&] {
    return nlohmann::json{{"kind", kFailure}, {"what", what}, {"is_unrecoverable", true}, {kOtherChoices, true}};
  };
  connection_->try_to_send(body, "a failure");
}

void Worker::report_savepoint(int number, const std::string& path, std::int64_t step) noexcept {
  const auto body = [&] {
    return nlohmann::json{{"kind", kSavepointMade}, {"number", number}, {"path", path}, {"step", step}};
  };
  connection_->try_to_send(body, "a savepoint that was asked for");
}

void Worker::report_no_savepoint(int number, const std::string& why) noexcept {
  const auto body = [&] { return nlohmann::json{{"kind", kSavepointNotMade}, {"number", number}, {"why", why}}; };
  connection_->try_to_send(body, "the failure of a savepoint that was asked for");
}

void Worker::report_finished() {
  connection_->send({{"kind", kFinished}});
}

void Worker::report_event(const std::string& name, const std::string& details) noexcept {
  const auto body = [&] {
    return nlohmann::json{{"kind", kEvent}, {"name", name}, {"details", parse_or_quote(details)}};
  };
  connection_->try_to_send(body, "an event");
}

}  // namespace holdfast::recovery
