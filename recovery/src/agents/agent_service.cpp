// A host that may be cut off must not rely on being told so. Everything here follows from beats that the head has
// acknowledged: the fence, the answer to a head that resumes, and the end of the generation. Each process that the head
// may still believe in is known here until the head has forgotten it, so nothing is lost with a connection but messages
// of processes. docs/decisions/agent-connections.md

#include "agents/agent_service.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agents/head_mark.h"
#include "channel/messages.h"
#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"
#include "holdfast/recovery/run_lock.h"
#include "holdfast/recovery/watchdog_options.h"

namespace holdfast::recovery {
namespace {

// For a file that another host has just made to be seen here.
constexpr std::chrono::seconds kMarkTime(3);

nlohmann::json not_started(const Error& error) {
  return {{"kind", kNotStarted}, {"code", static_cast<int>(error.code())}, {"what", error.what()}};
}

}  // namespace

AgentService::AgentService(boost::asio::io_context& io, std::unique_ptr<HostAgent> host, Fence& fence,
                           const HostTimes& times, Handlers handlers, Folder folder)
    : times_(times),
      handlers_(std::move(handlers)),
      folder_(std::move(folder)),
      fence_(fence),
      host_(std::move(host)),
      look_timer_(io),
      stop_timer_(io) {
  host_->when_unreached([this](int generation, int peer, const std::string& why) {
    say({{"kind", kUnreached}, {"generation", generation}, {"peer", peer}, {"what", why}});
  });
}

AgentService::~AgentService() {
  fence_.set({});
  if (connection_ != nullptr) connection_->close();
}

void AgentService::serve(std::shared_ptr<AgentConnection> connection) {
  HOLDFAST_ASSERT(connection_ == nullptr && !why_lost_ && connection->is_open());
  connection_ = std::move(connection);
  opened_ = connection_->beats().acknowledged();
  to_resume_.reset();
  is_present_ = false;
  connection_->set_handlers({.on_message = [this](const nlohmann::json& message) { take(message); },
                             .on_closed = [this](const std::string& why) { lose(why); }});
  wait_for_look();
}

// An order that is wrong closes the connection, with the sentence of what is thrown here.
void AgentService::take(const nlohmann::json& message) {
  const auto kind = message.at("kind").get<std::string>();
  if (kind == kOver) {
    const auto sentence = message.at("sentence").get<std::string>();
    const int exit_code = whole_number_in<int>(message, "exit_code");
    lose(sentence);
    // Nothing follows: the handler may end this service.
    why_lost_.reset();
    stop_timer_.cancel();
    if (handlers_.on_over) handlers_.on_over({.exit_code = exit_code, .sentence = sentence});
    return;
  }
  if (kind == kResume) {
    if (to_resume_ || is_present_) throw Error(ErrorCode::input_output, "the head resumed twice");
    to_resume_ = whole_numbers_in<int>(message, "members");
    const std::string before = head_.mark;
    head_ = folder_of_head_from(message.at("folder"));
    offered_.reset();
    const bool is_another = head_.mark != before;
    // Remembered, so that may_save() sees whether another run has taken the folder since.
    owner_ = owner_token(folder_.path);
    // A head that was started again may not know of generations whose lines the one before could not write.
    if (is_another) generation_ = -1;
    if (!is_another || processes_.empty()) return;
    // It names none of these processes, and they end. No beat can be sent while their state is saved.
    meets_another_head_ = true;
    return lose("another head has begun; it is served once the newest state here is saved");
  }
  // The head waits for the answer to its `resume`.
  if (!is_present_) throw Error(ErrorCode::input_output, fmt::format("the head sent \"{}\" too early", kind));
  if (kind == kStartProcess) return start(parse_start(message));
  if (kind == kOpenGeneration) {
    return open_generation(parse_generation(message), message.value("run", ""), message.value("token", ""));
  }
  if (kind == kCancelGeneration) return host_->cancel_generation();
  const int member = whole_number_in<int>(message, "member");
  if (kind == kDrop) {
    processes_.erase(member);
    return end_if_left();
  }
  // The process may have ended while the order was on its way.
  Process* const process = find(member);
  if (kind == kTell) {
    if (process == nullptr) return;
    try {
      process->process->send({.body = for_this_host(message.at("message"))});
    } catch (const Error& error) {
      // The end of a process that is gone says more.
      if (error.code() != ErrorCode::unavailable) say_of(member, {{"kind", kBadMessage}, {"what", error.what()}});
    }
  } else if (kind == kAskToLeave) {
    if (process != nullptr) process->process->ask_to_leave(whole_number_in<int>(message, "signal"));
  } else if (kind == kKill) {
    if (process != nullptr) process->process->kill();
  } else {
    throw Error(ErrorCode::input_output, fmt::format("the head sent an order of the unknown kind \"{}\"", kind));
  }
}

void AgentService::start(ReplicaStarter::Program program) {
  const int member = program.member;
  if (!folder_.is_shared) {
    const std::string name = fmt::format("{}=", kRunDirectoryVariable);
    std::erase_if(program.variables, [&](const std::string& variable) { return variable.starts_with(name); });
    program.variables.push_back(name + folder_.path);
  }
  if (processes_.contains(member)) {
    throw Error(ErrorCode::input_output, fmt::format("the head started process {} twice", member));
  }
  // Known before it runs, since its handlers are about it.
  Process& process = processes_[member];
  try {
    process.process = host_->start(
        program, {.on_message = [this, member](Message& message) { note(member, message.body); },
                  .on_bad_message =
                      [this, member](const std::string& what) {
                        say_of(member, {{"kind", kBadMessage}, {"what", what}});
                      },
                  .on_failure =
                      [this, member](const std::string& what, bool is_unrecoverable) {
                        say_of(member, {{"kind", kFailed}, {"what", what}, {"is_unrecoverable", is_unrecoverable}});
                      },
                  .on_death =
                      [this, member] {
                        say_of(member, {{"kind", kDied}});
                      },
                  .on_exit =
                      [this, member](ExitStatus status) {
                        // The head may have dropped it meanwhile.
                        const auto found = processes_.find(member);
                        if (found == processes_.end()) return;
                        Process& ended = found->second;
                        ended.end = {.member = member, .status = status, .crash = ended.process->crash()};
                        say(end_message(*ended.end));
                        ended.stage = Stage::ending;
                        leave_if_possible();
                      },
                  .on_swept =
                      [this, member](int ended, bool is_any_left) {
                        say_of(member, {{"kind", kSwept}, {"ended", ended}, {"is_any_left", is_any_left}});
                      },
                  .on_start_failed =
                      [this, member](const Error& error) {
                        say_of(member, not_started(error));
                        processes_.erase(member);
                        end_if_left();
                      }});
  } catch (const Error& error) {
    processes_.erase(member);
    return say_of(member, not_started(error));
  }
  say_of(member,
         {{"kind", kStarted}, {"pid", process.process->pid()}, {"at", std::int64_t{process.process->started()}}});
}

// The order may be from before a cut. Then the head may have given this host up already.
void AgentService::open_generation(const HostAgent::Generation& generation, const std::string& run,
                                   const std::string& token) {
  if (fence_.has_run_out()) return lose("it has not answered for too long to begin a generation");
  if (generation.number <= generation_) {
    throw Error(ErrorCode::input_output,
                fmt::format("the head opened generation {} after {}", generation.number, generation_));
  }
  generation_ = generation.number;
  if (!has_named_folder(run, token)) return;
  for (const int member : generation.members) {
    Process* const process = find(member);
    if (process != nullptr && process->stage != Stage::ending) process->stage = Stage::training;
  }
  host_->open_generation(generation);
}

// A folder that cannot be written to would end each generation anew, so this agent ends.
bool AgentService::has_named_folder(const std::string& run, const std::string& token) {
  if (folder_.is_shared || folder_.path.empty() || run.empty() || run_in(folder_.path) == run) return true;
  try {
    name_folder(folder_.path, run, token);
  } catch (const Error& error) {
    end({.exit_code = kExitUnrecoverable, .sentence = error.what(), .is_head_wrong = true});
    return false;
  }
  run_ = run;
  return true;
}

// Null for one that has ended.
AgentService::Process* AgentService::find(int member) {
  const auto found = processes_.find(member);
  return found == processes_.end() || found->second.end ? nullptr : &found->second;
}

// Messages of processes are the head's to judge. But this agent must know which processes are in no generation.
void AgentService::note(int member, const nlohmann::json& body) {
  Process* const process = find(member);
  if (process == nullptr) return;
  const auto kind = body.at("kind").get<std::string>();
  if (kind == kJoined) process->process->watch_for_death();
  if (process->stage != Stage::ending) {
    if (kind == kReady) process->stage = Stage::ready;
    if (kind == kFinished || kind == kFailure) process->stage = Stage::ending;
    // One that left an older generation is about to enter the newest one.
    if (kind == kCheckedIn && body.at("generation").get<int>() == generation_) {
      process->stage = Stage::waiting;
      process->step = body.at("step").get<std::int64_t>();
    }
  }
  say_of(member, {{"kind", kSaid}, {"message", body}});
  leave_if_possible();
}

// What is said while there is no head is lost. The answer to its next `resume` says what counts.
void AgentService::say(nlohmann::json message) {
  if (connection_ == nullptr || !is_present_) return;
  try {
    connection_->send(message);
  } catch (const Error& error) {
    // A message that is too long, or whose text cannot be sent: it is a program's. Those of the agent have no such
    // text.
    if (!message.contains("member")) throw;
    connection_->send({{"kind", kBadMessage}, {"member", message.at("member")}, {"what", error.what()}});
  }
}

void AgentService::say_of(int member, nlohmann::json message) {
  message["member"] = member;
  say(std::move(message));
}

// A completion that is queued when the service goes still comes. Hence the weak pointer.
template <class Act>
auto AgentService::while_alive(Act act) {
  return [weak = std::weak_ptr<const bool>(is_alive_), act](const boost::system::error_code& error) {
    if (!error && !weak.expired()) act();
  };
}

void AgentService::wait_for_look() {
  look_timer_.expires_after(times_.beat);
  look_timer_.async_wait(while_alive([this] {
    if (connection_ == nullptr) return;
    look();
    if (connection_ != nullptr) wait_for_look();
  }));
}

void AgentService::look() {
  const BootTime acknowledged = connection_->beats().acknowledged();
  if (boot_time_now() - acknowledged >= times_.fence) {
    return lose(fmt::format("the head has not answered for {} ms", times_.fence.count()));
  }
  // How old the head's word was that took this agent is not known. So only a beat of this connection counts.
  if (acknowledged <= opened_) return;
  fence_.set(acknowledged + times_.fence);
  if (to_resume_ && !has_folder_of_head()) return;
  if (to_resume_) {
    run_ = run_in(folder_.path);
    answer_resume();
  }
  if (is_present_) say_sights();
}

// Whether the run directory here is of the head's run. Ends this agent where it is not.
bool AgentService::has_folder_of_head() {
  if (head_.mark.empty() || folder_.path.empty()) return true;
  return folder_.is_shared ? sees_the_mark() : takes_own_folder();
}

bool AgentService::sees_the_mark() {
  if (is_head_mark_there(folder_.path, head_.mark)) return true;
  // Before the head gives this connection up.
  if (boot_time_now() - opened_ < std::min<BootTime>(kMarkTime, times_.host / 2)) return false;
  end({.exit_code = kExitUnrecoverable,
       .sentence = fmt::format(
           "the run directory {} of this host is not that of the head: there is no {}/hosts/head with the head's "
           "mark here; give --run-dir a folder that all hosts share, under the same name, or --separate-run-dirs where "
           "each host has one of its own",
           folder_.path, folder_.path),
       .is_head_wrong = true});
  return false;
}

bool AgentService::takes_own_folder() {
  const auto refuse = [this](const std::string& sentence) {
    end({.exit_code = kExitUnrecoverable, .sentence = sentence, .is_head_wrong = true});
    return false;
  };
  // Two processes would write and delete the same files.
  if (is_head_mark_there(folder_.path, head_.mark)) {
    return refuse(
        fmt::format("the run directory {} of this host is that of the head, although --separate-run-dirs says "
                    "that each host has one of its own; leave that option out on all hosts",
                    folder_.path));
  }
  try {
    switch (compare_folder(folder_.path, head_)) {
      case FolderOfAgent::of_the_run:
      case FolderOfAgent::without_a_run:
        take_choices(folder_.path, head_.choices);
        return true;
      case FolderOfAgent::offers_its_run:
        log(LogLevel::info,
            fmt::format("agent: host 0 has no savepoint, so the run in {} of this host may go on", folder_.path));
        offered_ = offered_run(folder_.path);
        return true;
      case FolderOfAgent::of_an_earlier_one:
        end({.begins_anew = true});
        return false;
      case FolderOfAgent::of_another_one:
        break;
    }
  } catch (const Error& error) {
    return refuse(error.what());
  }
  return refuse(
      fmt::format("the run directory {} of this host holds another run than that of the head; to go on with the run "
                  "here, copy this folder to the head's host, and to go on with that of the head, move it away",
                  folder_.path));
}

// What the head says of itself in a message to a process of this host, or of the head's host.
nlohmann::json AgentService::for_this_host(nlohmann::json message) const {
  if (message.at("kind") != kHello) return message;
  message["watchdog_pid"] = ::getpid();
  message["cores"] = core_count();
  if (!folder_.is_shared) message["run_directory"] = folder_.path;
  return message;
}

void AgentService::ask_to_leave(int signal) {
  leaving_by_ = signal;
  say({{"kind", kLeaving}, {"signal", signal}});
  end_if_left();
}

// The head has forgotten all processes of this host. What follows is of no interest to it any more.
void AgentService::end_if_left() {
  if (!leaving_by_ || (connection_ != nullptr && !processes_.empty())) return;
  const auto over = [this] {
    end({.exit_code = kExitStopped, .sentence = "this host has left the run as asked; the other hosts go on"});
  };
  if (connection_ == nullptr) return over();
  // The head would take a connection that only ends for a lost host.
  connection_->close_when_sent([over, weak = std::weak_ptr<const bool>(is_alive_)] {
    if (!weak.expired()) over();
  });
}

// Later: the handler may end this service, whose functions are on the stack.
void AgentService::end(const Handlers::Over& over) {
  lose(over.sentence);
  why_lost_.reset();
  stop_timer_.expires_after(std::chrono::milliseconds(0));
  stop_timer_.async_wait(while_alive([this, over] {
    if (handlers_.on_over) handlers_.on_over(over);
  }));
}

// What the head has forgotten is ended. What has ended and the head still believes in is named; also a process that
// only an agent before this one can have started.
void AgentService::answer_resume() {
  const std::set<int> known(to_resume_->begin(), to_resume_->end());
  to_resume_.reset();
  std::erase_if(processes_, [&](const auto& entry) { return !known.contains(entry.first); });
  Presence presence;
  for (const int member : known) {
    const auto found = processes_.find(member);
    if (found == processes_.end()) {
      presence.ended.push_back({.member = member, .status = {.signal = SIGKILL}});
    } else if (found->second.end) {
      presence.ended.push_back(*found->second.end);
    } else if (found->second.stage == Stage::ready || found->second.stage == Stage::waiting) {
      presence.members.push_back(member);
      presence.steps.push_back(found->second.step);
    }
  }
  presence.offered = offered_;
  is_present_ = true;
  say(presence_message(presence));
  if (leaving_by_) say({{"kind", kLeaving}, {"signal", *leaving_by_}});
}

void AgentService::say_sights() {
  nlohmann::json statuses = nlohmann::json::array();
  for (const auto& [member, known] : processes_) {
    if (known.end) continue;
    const ReplicaProcess& process = *known.process;
    // Only its times are sent: how many shards the process has is known to the head.
    const Load load = process.load(member, 1, 1);
    statuses.push_back(status_message({.heartbeat = process.heartbeat(member, host_->arrivals(member)),
                                       .join_state = process.join_state(),
                                       .samples = process.samples(),
                                       .computing = load.computing,
                                       .waiting = load.waiting,
                                       .in_background = process.what_in_background(),
                                       .is_stopped = process.is_stopped(),
                                       .cpu_demand = process.cpu_demand()}));
  }
  say({{"kind", kStatuses}, {"statuses", statuses}});
}

// The fence runs out at once: the head may have given this host up as soon as the connection was closed there.
void AgentService::lose(const std::string& why) {
  if (connection_ == nullptr) return;
  std::exchange(connection_, nullptr)->close();
  // Counted from when the fence ran out, where that was noticed late.
  const BootTime late = fence_.until() == BootTime{} ? BootTime{} : boot_time_now() - fence_.until();
  fence_.set({});
  look_timer_.cancel();
  why_lost_ = why;
  host_->cancel_generation();
  leave_after(std::clamp(times_.stop - std::chrono::ceil<std::chrono::milliseconds>(late), std::chrono::milliseconds(0),
                         times_.stop));
  leave_if_possible();
}

bool AgentService::is_any_in_a_generation() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& entry) {
    const Process& process = entry.second;
    return !process.end && process.stage != Stage::ready && process.stage != Stage::waiting;
  });
}

// A head of one host alone leaves no mark. Where it has the directory, the last mark is that of the head before it, and
// its own options may be others.
bool AgentService::may_save() const {
  if (folder_.path.empty() || !run_) return true;
  if (run_in(folder_.path) != *run_) return false;
  return owner_token(folder_.path) == owner_ || !is_head_mark_there(folder_.path, head_.mark);
}

bool AgentService::is_any_state_on_its_way() const {
  const auto newest = host_->newest_snapshot();
  const std::int64_t kept = newest ? newest->step : -1;
  return std::any_of(processes_.begin(), processes_.end(), [kept](const auto& entry) {
    const Process& process = entry.second;
    return !process.end && process.stage == Stage::waiting && process.step > kept;
  });
}

// Later: the caller may be in the midst of an event of the connection or of a process.
void AgentService::leave_if_possible() {
  if (why_lost_ && !is_any_in_a_generation()) leave_after(std::chrono::milliseconds(0));
}

void AgentService::leave_after(std::chrono::milliseconds time) {
  stop_timer_.expires_after(time);
  stop_timer_.async_wait(while_alive([this] {
    if (why_lost_) leave();
  }));
}

// A process with a kill pending never comes back to its program, also where the kernel holds it in a system call. So it
// is not waited for, and not named to the next head.
void AgentService::leave() {
  stop_timer_.cancel();
  for (auto& [member, known] : processes_) {
    if (known.end || known.stage == Stage::ready || known.stage == Stage::waiting) continue;
    known.stage = Stage::ending;
    known.process->kill();
  }
  const std::string why = *std::exchange(why_lost_, std::nullopt);
  if (handlers_.on_lost) handlers_.on_lost(why);
}

}  // namespace holdfast::recovery
