// A host that is not the first has an agent, and no watchdog: it decides nothing. It holds a lock in a folder of its
// own, so that a second agent of the host is refused and its processes keep it locked. docs/decisions/host-folders.md

#include "holdfast/recovery/run_program.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "agents/agent.h"  // first, for the sake of Asio

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agents/folder_of_run.h"
#include "agents/hosts_folder.h"
#include "agents/remote_hosts.h"
#include "decide/policy.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/run_lock.h"
#include "hosts/local_host.h"
#include "hosts/surroundings.h"
#include "process/local_replicas.h"
#include "process/signals.h"
#include "watchdog/launch_variables.h"
#include "watchdog/watchdog_loop.h"

namespace holdfast::recovery {
namespace {

// For an agent that is about to end, and for replicas of one that was killed.
constexpr std::chrono::seconds kLockTime(2);
constexpr std::chrono::seconds kTimeToDie(30);

// What has to be the same on all hosts.
std::map<std::string, std::string> choices_of(const WatchdogOptions& options, const Surroundings& found) {
  std::map<std::string, std::string> choices{{"the command", fmt::format("\"{}\"", fmt::join(options.command, " "))}};
  if (!found.has_separate_folders) choices.emplace("--run-dir", options.run_directory);
  return choices;
}

// `options` are those of this host alone.
Introduction introduction_of(const WatchdogOptions& options, const Surroundings& found) {
  return {.version = HOLDFAST_VERSION,
          .run_id = found.run_id,
          .hosts = found.hosts,
          .host = found.host,
          .replicas = options.replicas,
          .program = digest_of_program(options.executable),
          .agent = token_of_this_process(),
          .has_separate_folders = found.has_separate_folders,
          .choices = choices_of(options, found)};
}

// The options of the whole run, for the head. Each host has the same devices.
WatchdogOptions of_all_hosts(WatchdogOptions options, const Surroundings& found) {
  const int hosts = found.hosts;
  const std::vector<std::string> devices = options.devices;
  options.hosts = hosts;
  options.has_separate_folders = found.has_separate_folders;
  options.replicas *= hosts;
  options.devices.clear();
  // Slots of one device follow one another, one on each host: hosts take turns (decide/policy.cpp).
  for (const std::string& device : devices) {
    options.devices.insert(options.devices.end(), static_cast<std::size_t>(hosts), device);
  }
  return options;
}

RunOutcome run_head(const OwnRun& own, const Surroundings& found, const Secret& secret) {
  const Introduction introduction = introduction_of(own.options, found);
  log_as_asked(own.options);
  outlive_failing_writes();
  const OwnedRun run = OwnedRun::take(own.options.run_directory, own.how);
  const WatchdogOptions of_all = of_all_hosts(own.begin(), found);
  // Checked once more: begin() may give other options than those that run_here() has checked.
  check_options(of_all);
  const auto folder =
      std::make_shared<HeadFolder>(of_all.run_directory, own.how.how.start == Start::fresh, run.put_aside_as());
  RemoteHosts others({.head = found.head, .introduction = introduction, .folder = folder}, secret);
  // Other hosts would have to begin anew, too, so it never gives way to another run.
  return WatchdogLoop(of_all, run, false, &others).run();
}

class HostRun {
 public:
  HostRun(const WatchdogOptions& options, const Surroundings& found, const HostFlags& flags, const Secret& secret)
      : options_(options),
        host_(found.host),
        // A folder of this host alone is locked as that of a run on one host.
        locked_folder_(found.has_separate_folders ? options.run_directory
                                                  : folder_of_host(options.run_directory, found.host)),
        lock_(lock_run_directory(locked_folder_, Deadline::after(kLockTime), Deadline::after(kTimeToDie))),
        signals_(io_, SIGINT, SIGTERM, SIGUSR1),
        links_(io_) {
    // nohup(1) starts programs with SIGHUP ignored, so that it does not stop them.
    if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
    Introduction introduction = introduction_of(options, found);
    introduction.port = links_.port();
    auto replicas = local_replicas(
        io_, lock_.value(), [] { log(LogLevel::warning, "agent: the process that ends what replicas leave has died"); },
        &fence_);
    agent_.emplace(io_,
                   AgentOptions{.head = found.head,
                                .introduction = std::move(introduction),
                                .join_timeout = options.join_timeout,
                                .patience = flags.head_timeout,
                                .folder = {.path = options.run_directory, .is_shared = !found.has_separate_folders}},
                   secret, local_host(io_, std::move(replicas), {.links = &links_}), fence_,
                   Agent::Handlers{.on_over =
                                       [this](const Agent::End& end) {
                                         end_ = end;
                                         io_.stop();
                                       },
                                   .on_another_head = [this] { save_newest(); },
                                   .why_not_dial = [this] { return why_not_dial(); },
                                   .on_news = [this](const std::string& what) { tell(what); }});
    wait_for_signal();
  }

  RunOutcome run() {
    io_.run();
    // Their states are lost but for the newest in memory.
    RunOutcome outcome{.exit_code = end_.exit_code, .sentence = end_.sentence, .is_stop_requested = is_leaving_};
    if (end_.is_head_lost) save_newest();
    return outcome;
  }
  // The head has begun anew, and the run directory of this host holds an earlier run.
  bool begins_anew() const { return end_.begins_anew; }

 private:
  // Where locks do not reach across hosts, the two would drive each other out again and again.
  std::string why_not_dial() const {
    if (!is_directory_taken_over(lock_, locked_folder_)) return "";
    return fmt::format("another agent has begun as host {} of this run; give each host a --node-rank of its own",
                       host_);
  }

  void save_newest() {
    const auto newest = agent_->newest_snapshot();
    if (!newest || !options_.when_unfinished) return;
    // A savepoint of this run would be taken for one of the run that has begun there.
    if (!agent_->may_save()) {
      return log(
          LogLevel::warning,
          fmt::format("agent: the newest state in memory, of step {}, is not saved, because another run has begun "
                      "in {}",
                      newest->step, options_.run_directory));
    }
    options_.when_unfinished(newest->step, newest->bytes);
  }

  // Attempts to reach the head fail alike, many times.
  void tell(const std::string& news) {
    const bool is_new = news != std::exchange(last_news_, news);
    log(is_new ? LogLevel::info : LogLevel::debug, fmt::format("agent: {}", news));
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      const auto now = std::chrono::steady_clock::now();
      const bool is_second = is_leaving_ && now - asked_at_ >= kOneRequest;
      if (!std::exchange(is_leaving_, true)) {
        asked_at_ = now;
        agent_->ask_to_leave(signal);
        // An agent that the head does not let go in time leaves all the same.
        grace_.expires_after(time_to_leave(options_));
        grace_.async_wait([this](const boost::system::error_code& cancelled) {
          if (!cancelled) leave("the time to leave was over");
        });
      }
      if (is_second) return leave("it was asked to leave a second time");
      wait_for_signal();
    });
  }

  void leave(const std::string& why) {
    end_ = {.exit_code = kExitStopped,
            .sentence = fmt::format("this host has left the run at once: {}", why),
            .is_head_lost = agent_->is_head_lost()};
    io_.stop();
  }

  const WatchdogOptions& options_;
  const int host_;
  const std::string locked_folder_;
  const FileDescriptor lock_;
  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer grace_{io_};
  LinkListener links_;
  Fence fence_;
  Agent::End end_;
  std::string last_news_;
  bool is_leaving_ = false;
  std::chrono::steady_clock::time_point asked_at_{};
  std::optional<Agent> agent_;  // last: it uses all other members
};

RunOutcome run_here(const OwnRun& run, const Surroundings& found, const HostFlags& flags) {
  const Secret secret = secret_of(found);
  // All that can be known before the first host has begun.
  check_options(of_all_hosts(run.options, found));
  if (found.host == 0) return run_head(run, found, secret);
  log_as_asked(run.options);
  outlive_failing_writes();
  if (run.how.how.start == Start::fresh) {
    log(LogLevel::info, fmt::format("agent: {} has no effect here, since the first host decides how the run starts",
                                    run.how.how.asked_by));
  }
  for (;;) {
    // A scope of its own, at whose end the agent gives up its lock. A folder of this host alone is locked again below.
    {
      HostRun host(run.options, found, flags, secret);
      const RunOutcome outcome = host.run();
      if (!host.begins_anew()) return outcome;
    }
    // What the head did with its folder. None of this host's processes has started. Nothing is left that could be put
    // aside once more.
    OwnedRun::take(run.options.run_directory,
                   {.copies = run.how.copies, .how = {.start = Start::fresh, .asked_by = "host 0 has begun anew"}});
  }
}

}  // namespace

RunOutcome run_program(WatchdogOptions options, std::vector<std::string> devices, const HostFlags& hosts) {
  const Surroundings found = surroundings_from(hosts);
  if (found.hosts == 1) return run_watchdog(for_any_program(std::move(options), std::move(devices), hosts));
  options = complete_for_a_host(std::move(options), std::move(devices), found.replicas);
  options.variables_of = variables_on_hosts(options.devices, found.hosts, options.run_directory);
  return run_here(
      {.options = options, .how = {.copies = std::nullopt, .how = options.start}, .begin = [&] { return options; }},
      found, hosts);
}

HostOfRun host_of_run() {
  const Surroundings found = surroundings_from({});
  return {.hosts = found.hosts, .host = found.host, .replicas = found.replicas};
}

RunOutcome run_on_hosts(const OwnRun& run) {
  return run_here(run, surroundings_from({}), {});
}

}  // namespace holdfast::recovery
