// A program to be supervised. As a worker it does what its script says; otherwise it is the watchdog of such workers:
//
//   recovery_worker RUN_DIRECTORY REPLICAS STATEMENT...
//
// and, before the statements, fault=SPECIFICATION..., fails=N, place_rest=MILLISECONDS
//
// A statement is VERB[@RANK[:GENERATION]]; a replica that it does not name passes over it.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"
#include "holdfast/recovery/watchdog.h"
#include "holdfast/recovery/worker.h"
#include "support/comes_true.h"
#include "support/text/whole_lines.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kArenaBytes = 4096;
constexpr int kRounds = 100;

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(1h);
}

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

struct Statement {
  std::string verb;
  int rank = -1;        // -1: all
  int generation = -1;  // -1: all
};

Statement parse(const std::string& text) {
  const std::size_t at = text.find('@');
  Statement statement{.verb = text.substr(0, at)};
  if (at == std::string::npos) return statement;
  const std::size_t colon = text.find(':', at);
  statement.rank = std::stoi(text.substr(at + 1, colon - at - 1));
  if (colon != std::string::npos) statement.generation = std::stoi(text.substr(colon + 1));
  return statement;
}

SignalWord& signal_of(SharedMemory& memory) {
  return *reinterpret_cast<SignalWord*>(memory.writable().data());
}

const SignalWord& signal_of(const SharedMemory& memory) {
  return *reinterpret_cast<const SignalWord*>(memory.readable().data());
}

// Each process increments its own word and waits for all others, round by round.
void count_together(Worker& worker, Worker::Arena& arena) {
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    worker.enter(Phase::computing, round);
    signal_of(arena.own).count_up();
    worker.enter(Phase::waiting_for_peers, round);
    for (int peer = 0; peer < worker.size(); ++peer) {
      if (peer == worker.rank()) continue;
      const auto outcome = signal_of(std::as_const(arena.all.at(peer))).wait_until(round, Deadline::after(kPatience));
      if (outcome == SignalWord::Outcome::cancelled) throw Error(ErrorCode::cancelled, "the generation was ended");
      require(outcome == SignalWord::Outcome::reached, "a peer did not count up");
    }
  }
}

// Each process shares memory that holds its process's number. Shown again, it is the same view, at the same address.
void show_memory(Worker& worker) {
  static SharedMemory own = SharedMemory::create("shown", kArenaBytes);
  static std::map<int, const std::byte*> seen;  // by the number of the process
  const auto number_in = [](const SharedMemory& memory) {
    int number = 0;
    std::memcpy(&number, memory.readable().data(), sizeof number);
    return number;
  };
  const int process = ::getpid();
  std::memcpy(own.writable().data(), &process, sizeof process);
  Worker::Arena arena = worker.exchange_arenas(kArenaBytes, Deadline::after(kPatience), &own);
  require(std::ssize(arena.shown) == worker.size(), "not everybody's memory was shown");
  int again = 0;
  for (const auto& view : arena.shown) {
    const auto [known, is_new] = seen.try_emplace(number_in(*view), view->readable().data());
    require(known->second == view->readable().data(), "the same memory was mapped twice");
    if (!is_new) ++again;
  }
  // No process may continue, and die, before all have seen its memory.
  count_together(worker, arena);
  worker.report_event("seen_again", std::to_string(again));
}

void use_arenas(Worker& worker) {
  for (int number = 0; number < 2; ++number) {
    Worker::Arena arena = worker.exchange_arenas(kArenaBytes, Deadline::after(kPatience));
    require(arena.all.at(worker.rank()).size_bytes() == 0, "the own rank has a second view");
    count_together(worker, arena);
  }
}

// Ends with SIGSEGV if the memory is protected as promised.
void write_to_a_peer(Worker& worker) {
  const Worker::Arena arena = worker.exchange_arenas(kArenaBytes, Deadline::after(kPatience));
  const auto bytes = arena.all.at((worker.rank() + 1) % worker.size()).readable();
  ::signal(SIGSEGV, SIG_DFL);
  *const_cast<volatile std::byte*>(bytes.data() + 8) = std::byte{1};
}

void wait_for_a_peer_that_never_counts(Worker& worker) {
  const Worker::Arena arena = worker.exchange_arenas(kArenaBytes, Deadline::after(kPatience));
  worker.enter(Phase::waiting_for_peers, worker.rank());
  const SignalWord& word = signal_of(std::as_const(arena.all.at((worker.rank() + 1) % worker.size())));
  if (word.wait_until(1, Deadline::after(kPatience)) == SignalWord::Outcome::cancelled) {
    throw Error(ErrorCode::cancelled, "the generation was ended");
  }
  sleep_for_ever();
}

void train(Worker& worker) {
  for (std::int64_t step = 0; step < 20; ++step) {
    worker.enter(Phase::computing, step);
    worker.faults().reach(FaultPhase::compute, step);
  }
}

// Steps of some length, so that the limit follows their times and is no longer that of a first step.
void pace(Worker& worker) {
  for (std::int64_t step = 0; step < 500; ++step) {
    worker.enter(Phase::computing, step);
    std::this_thread::sleep_for(1ms);
  }
}

void tell_restarts(Worker& worker) {
  for (const Restart& restart : worker.restarts()) {
    worker.report_event("told restart", "generation " + std::to_string(restart.generation) + ": " + restart.cause);
  }
}

// What a training script does when it is asked to stop, to regroup or for a savepoint.
void work_until_stop(Worker& worker) {
  worker.report_event("working", "{}");
  int answered = 0;
  for (std::int64_t step = 0; !worker.requests().stop; ++step) {
    worker.enter(Phase::computing, step);
    std::this_thread::sleep_for(1ms);
    worker.count_samples(10);
    if (worker.requests().regroup) throw Error(ErrorCode::cancelled, "the replicas regroup");
    if (const int asked = worker.requests().savepoint; asked > answered) {
      worker.report_savepoint(answered = asked, worker.run_directory() + "/a.h5", step);
    }
  }
  worker.report_event("left in order", "{}");
}

// What a training does on one of several hosts whose head is lost.
void train_until_fenced(Worker& worker) {
  require(worker.has_fence(), "there is no fence");
  require(worker.may_change(), "the fence ran out before the generation began");
  worker.report_event("training", "{}");
  for (std::int64_t step = 0; worker.may_change(); ++step) {
    worker.enter(Phase::computing, step);
    std::this_thread::sleep_for(1ms);
  }
  throw Error(ErrorCode::cancelled, "the host is cut off");
}

void refuse_savepoint(Worker& worker) {
  while (worker.requests().savepoint == 0) {
    worker.beat();
    std::this_thread::sleep_for(1ms);
  }
  worker.report_no_savepoint(worker.requests().savepoint, "the disk is full");
}

void die_when_asked_for_a_savepoint(Worker& worker) {
  while (worker.requests().savepoint == 0) {
    worker.beat();
    std::this_thread::sleep_for(1ms);
  }
  ::kill(::getpid(), SIGKILL);
}

void ignore_stop(Worker& worker) {
  worker.report_event("working", "{}");
  while (true) {
    worker.beat();
    std::this_thread::sleep_for(1ms);
  }
}

// The process continues to train as if nothing had happened.
void hang_in_the_background(Worker& worker) {
  worker.enter_background({.what = "fsync of a disk that is gone", .bytes = 1 << 20});
  for (std::int64_t step = 0;; ++step) {
    worker.enter(Phase::computing, step);
    std::this_thread::sleep_for(1ms);
  }
}

// Runs the function above that the verb names. Returns false when the script ends here.
bool obey(Worker& worker, const std::string& verb) {
  if (verb == "finish") worker.report_finished();
  if (verb == "throw") throw std::runtime_error("thrown by the script");
  if (verb == "throw_bytes") throw std::runtime_error("not UTF-8: \xff\xfe");
  if (verb == "fail_for_good") throw Error(ErrorCode::incompatible, "the option x differs from the run's");
  if (verb == "kill") ::kill(::getpid(), SIGKILL);
  if (verb == "stop") ::kill(::getpid(), SIGSTOP);
  if (verb == "exit3") ::_exit(3);
  if (verb == "compute") worker.enter(Phase::computing, 7);
  if (verb == "wait") worker.enter(Phase::waiting_for_peers, worker.rank());
  if (verb == "hang") sleep_for_ever();
  if (verb == "hang_in_the_background") hang_in_the_background(worker);
  if (verb == "train") train(worker);
  if (verb == "pace") pace(worker);
  if (verb == "arenas") use_arenas(worker);
  if (verb == "show") show_memory(worker);
  if (verb == "unequal_arenas") worker.exchange_arenas(kArenaBytes * (1 + worker.rank()), Deadline::after(kPatience));
  if (verb == "write_to_a_peer") write_to_a_peer(worker);
  if (verb == "wait_for_a_peer") wait_for_a_peer_that_never_counts(worker);
  if (verb == "until_stop") work_until_stop(worker);
  if (verb == "ignore_stop") ignore_stop(worker);
  if (verb == "until_fenced") train_until_fenced(worker);
  if (verb == "refuse_savepoint") refuse_savepoint(worker);
  if (verb == "die_when_asked") die_when_asked_for_a_savepoint(worker);
  if (verb == "tell_restarts") tell_restarts(worker);
  if (verb == "echo_config") worker.report_event("config", worker.config());
  return verb != "until_stop" && verb != "leave";
}

void obey_all(Worker& worker, std::span<const std::string> script) {
  for (const std::string& text : script) {
    const Statement statement = parse(text);
    if (statement.rank >= 0 && statement.rank != worker.rank()) continue;
    if (statement.generation >= 0 && statement.generation != worker.generation()) continue;
    if (!obey(worker, statement.verb)) break;
  }
}

bool trains_without_rank_1(const std::string& run_directory) {
  const std::vector<std::string> lines = whole_lines(run_directory + "/journal.jsonl");
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(R"("action":"open_generation","generation":0,"members":[0]})") != std::string::npos;
  });
}

// "fails=N": the first N processes that are started for rank 1 fail before they are ready. A later one is ready when
// the first generation goes on without them, which takes longer than its place rests where the machine is busy.
void fail_at_start(const Worker& worker, std::span<const std::string> script) {
  if (worker.rank() != 1) return;
  for (const std::string& text : script) {
    if (!text.starts_with("fails=")) continue;
    for (int i = 0; i < std::stoi(text.substr(6)); ++i) {
      if (std::filesystem::create_directory(worker.run_directory() + "/failed-" + std::to_string(i))) ::_exit(4);
    }
    require(comes_true([&] { return trains_without_rank_1(worker.run_directory()); }), "no generation was opened");
  }
}

// A survivor of a failure follows the script from its start, as a member of the next generation.
int run_worker(std::span<const std::string> script) {
  for (const std::string& text : script) {
    if (text == "hang_before_join") sleep_for_ever();
    if (text == "exit_before_join") return 4;
  }
  const auto worker = Worker::join(Deadline::after(kPatience));
  fail_at_start(*worker, script);
  while (true) {
    worker->enter_generation(Deadline::after(kPatience));
    try {
      obey_all(*worker, script);
      return 0;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) continue;
      worker->report_failure(error.what(), error.code() == ErrorCode::incompatible);
      return 1;
    } catch (const std::exception& error) {
      worker->report_failure(error.what(), false);
      return 1;
    }
  }
}

int supervise(const std::vector<std::string>& arguments) {
  WatchdogOptions options;
  options.replicas = std::stoi(arguments.at(2));
  options.run_directory = arguments.at(1);
  options.command = arguments;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("fault=")) options.recovery.faults.push_back(argument.substr(6));
    if (argument.starts_with("place_rest=")) {
      options.recovery.place_rest = std::chrono::milliseconds(std::stoi(argument.substr(11)));
    }
  }
  const RunOutcome outcome = run_watchdog(options);
  std::fprintf(stderr, "%s\n", outcome.sentence.c_str());
  return outcome.exit_code;
}

}  // namespace
}  // namespace holdfast::recovery

int main(int argc, char** argv) {
  using namespace holdfast::recovery;
  const std::vector<std::string> arguments(argv, argv + argc);
  return is_worker() ? run_worker(std::span(arguments).subspan(3)) : supervise(arguments);
}
