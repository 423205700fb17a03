#include "holdfast/recovery/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "channel.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "life_page.h"
#include "messages.h"

namespace holdfast::recovery {
namespace {

constexpr int kExitWithoutWatchdog = 70;
// The watchdog answers within milliseconds; one that was stopped by a signal does not.
constexpr std::chrono::seconds kSendTimeout(10);
constexpr std::chrono::seconds kListenPeriod(1);

[[noreturn]] void end_process(const std::string& why) {
  log(LogLevel::error, "replica: " + why + "; this process ends itself");
  ::_exit(kExitWithoutWatchdog);
}

FileDescriptor adopt(int descriptor) {
  // Programs that the application starts must neither hold the run directory's lock nor keep the channel open.
  if (descriptor < 0 || ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    throw Error(ErrorCode::invalid_argument, std::string(kWorkerVariable) + " names the descriptor " +
                                                 std::to_string(descriptor) +
                                                 ", which is not open; it is for the watchdog to set");
  }
  return FileDescriptor(descriptor);
}

std::array<int, 3> parse_variable() {
  const char* text = std::getenv(kWorkerVariable);
  const std::string value = text == nullptr ? "" : text;
  std::array<int, 3> numbers{-1, -1, -1};
  const char* position = value.data();
  const char* const end = value.data() + value.size();
  for (int& number : numbers) {
    const auto [next, error] = std::from_chars(position, end, number);
    if (error != std::errc{}) number = -1;
    position = next == end ? end : next + 1;
  }
  return numbers;
}

nlohmann::json parse_or_quote(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

}  // namespace

bool is_worker() {
  return std::getenv(kWorkerVariable) != nullptr;
}

// A thread of its own listens to the watchdog. It also holds the life page: it lives until the Worker goes, or the
// process.
struct Worker::Connection {
  Connection(FileDescriptor channel_end, FileDescriptor life_page, FileDescriptor lock_file)
      : channel(std::move(channel_end)),
        life(SharedMemory::map_writable(std::move(life_page), LifePage::kBytes)),
        page(LifePage::find(life)),
        lock(std::move(lock_file)),
        listener([this] { listen(); }) {}

  ~Connection() {
    is_leaving = true;
    channel.shut_down();
    listener.join();
  }

  void listen() {
    page.hold();
    try {
      channel.send({.body = {{"kind", kRegistered}}}, Deadline::after(kSendTimeout));
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
    if (kind == kStop) {
      is_stop_requested = true;
      return;
    }
    const std::scoped_lock guard(mutex);
    if (kind == kArena) {
      const int number = message.body.at("number").get<int>();
      arena_replies.insert_or_assign(number, std::move(message));
    } else if (kind == kWelcome) {
      welcome_message = std::move(message.body);
    }
    has_changed.notify_all();
  }

  // Peers may take long: the phase says that it is not this replica that hangs.
  template <typename Condition>
  void wait_for_peers(const Condition& condition, const std::string& what, Deadline deadline) {
    const Phase phase = page.phase;
    const std::int64_t step = page.step;
    page.enter(Phase::waiting_for_peers, step);
    std::unique_lock guard(mutex);
    const bool is_met = has_changed.wait_until(guard, deadline.moment(), condition);
    page.enter(phase, step);
    if (!is_met) throw Error(ErrorCode::deadline_exceeded, what + " took longer than it may");
  }

  void wait_for_welcome(Deadline deadline) {
    wait_for_peers([this] { return welcome_message.has_value(); }, "the start of all replicas", deadline);
    welcome = parse_welcome(*welcome_message);
    std::vector<Fault> parsed;
    for (const std::string& fault : welcome.faults) parsed.push_back(parse_fault(fault, welcome.size));
    faults.emplace(std::move(parsed), Faults::Place{.rank = welcome.rank,
                                                    .generation = welcome.generation,
                                                    .watchdog_pid = welcome.watchdog_pid,
                                                    .run_directory = welcome.run_directory});
  }

  Message wait_for_arenas(int number, Deadline deadline) {
    wait_for_peers([this, number] { return arena_replies.contains(number); },
                   "the exchange of shared memory number " + std::to_string(number) + " between all replicas",
                   deadline);
    const std::scoped_lock guard(mutex);
    return std::move(arena_replies.extract(number).mapped());
  }

  void send(nlohmann::json body) const { channel.send({.body = std::move(body)}, Deadline::after(kSendTimeout)); }

  Channel channel;  // received from by the listener only
  SharedMemory life;
  LifePage& page;
  FileDescriptor lock;  // keeps the run directory locked until the last replica is gone

  // Constant after join().
  Welcome welcome;
  std::optional<Faults> faults;

  int next_arena = 0;

  std::atomic<bool> is_stop_requested = false;
  std::atomic<bool> is_leaving = false;

  std::mutex mutex;
  std::condition_variable has_changed;
  std::optional<nlohmann::json> welcome_message;  // guarded by mutex
  std::map<int, Message> arena_replies;           // guarded by mutex

  std::thread listener;  // last: it uses all the others
};

std::unique_ptr<Worker> Worker::join(Deadline deadline) {
  if (!is_worker()) {
    throw Error(ErrorCode::invalid_argument, "this process was not started by a watchdog, so it is no worker of one");
  }
  const std::array<int, 3> numbers = parse_variable();
  ::unsetenv(kWorkerVariable);
  FileDescriptor channel = adopt(numbers[0]);
  FileDescriptor life = adopt(numbers[1]);
  FileDescriptor lock = adopt(numbers[2]);
  auto connection = std::make_unique<Connection>(std::move(channel), std::move(life), std::move(lock));
  connection->wait_for_welcome(deadline);
  return std::unique_ptr<Worker>(new Worker(std::move(connection)));
}

Worker::Worker(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

Worker::~Worker() = default;

int Worker::rank() const {
  return connection_->welcome.rank;
}
int Worker::size() const {
  return connection_->welcome.size;
}
int Worker::generation() const {
  return connection_->welcome.generation;
}
const std::string& Worker::run_directory() const {
  return connection_->welcome.run_directory;
}
const std::string& Worker::config() const {
  return connection_->welcome.config;
}
std::span<const Restart> Worker::restarts() const {
  return connection_->welcome.restarts;
}
const Faults& Worker::faults() const {
  return *connection_->faults;
}

Worker::Arena Worker::exchange_arenas(std::size_t bytes, Deadline deadline) {
  const int number = connection_->next_arena++;
  connection_->send(arena_request(number, bytes));
  Message reply = connection_->wait_for_arenas(number, deadline);
  check_arena_reply(reply.body);
  HOLDFAST_ASSERT(reply.descriptors.size() == static_cast<std::size_t>(size()));
  Arena arena;
  arena.all.resize(reply.descriptors.size());
  for (int peer = 0; peer < size(); ++peer) {
    FileDescriptor& descriptor = reply.descriptors.at(peer);
    if (peer == rank()) {
      arena.own = SharedMemory::map_writable(std::move(descriptor), bytes);
    } else {
      arena.all.at(peer) = SharedMemory::map_read_only(std::move(descriptor), bytes);
    }
  }
  return arena;
}

void Worker::enter(Phase phase, std::int64_t step) {
  connection_->page.enter(phase, step);
}
void Worker::beat() {
  connection_->page.beat();
}
bool Worker::stop_requested() const {
  return connection_->is_stop_requested;
}

void Worker::report_failure(const std::string& what, bool is_unrecoverable) noexcept {
  try {
    connection_->send({{"kind", kFailure}, {"what", what}, {"is_unrecoverable", is_unrecoverable}});
  } catch (const std::exception& error) {
    log(LogLevel::error, std::string("replica: a failure could not be reported to the watchdog: ") + error.what());
  }
}

void Worker::report_finished() {
  connection_->send({{"kind", kFinished}});
}

void Worker::report_event(const std::string& name, const std::string& details) noexcept {
  try {
    connection_->send({{"kind", kEvent}, {"name", name}, {"details", parse_or_quote(details)}});
  } catch (const std::exception& error) {
    log(LogLevel::warning, std::string("replica: an event could not be reported to the watchdog: ") + error.what());
  }
}

}  // namespace holdfast::recovery
