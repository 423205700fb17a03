// An agent outlives its heads, but not its owner: how it ends says whether the state in its memory is all that is left,
// so that the owner saves it. docs/decisions/agent-connections.md

#include "agents/agent.h"

#include <utility>

#include <fmt/format.h>

#include "holdfast/base/deadline.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

// A process copies its state a second after its generation has ended.
constexpr std::chrono::seconds kTimeToKeep(5);
constexpr std::chrono::milliseconds kLookPeriod(50);

AgentOptions checked(AgentOptions options) {
  check_times(options.limits.times);
  return options;
}

}  // namespace

Agent::Agent(boost::asio::io_context& io, AgentOptions options, const Secret& secret, std::unique_ptr<HostAgent> host,
             Fence& fence, Handlers handlers)
    : io_(io),
      options_(checked(std::move(options))),
      tls_(tls_context(secret)),
      handlers_(std::move(handlers)),
      service_(io, std::move(host), fence, options_.limits.times,
               {.on_lost =
                    [this](const std::string& why) {
                      tell(fmt::format("the head was lost: {}", why));
                      if (is_leaving_) return leave_without_head();
                      const std::string why_not = handlers_.why_not_dial ? handlers_.why_not_dial() : "";
                      if (!why_not.empty()) return end({.exit_code = kExitUnrecoverable, .sentence = why_not});
                      if (service_.meets_another_head()) return save_for_another_head();
                      dial(options_.patience);
                    },
                .on_over =
                    [this](const AgentService::Handlers::Over& over) {
                      if (over.is_head_wrong) return end_without_head(over.exit_code, over.sentence);
                      end({.exit_code = over.exit_code, .sentence = over.sentence, .begins_anew = over.begins_anew});
                    }},
               options_.folder),
      keep_timer_(io) {
  dial(options_.join_timeout);
}

void Agent::dial(std::chrono::milliseconds time) {
  dialer_ = std::make_unique<HeadDialer>(
      io_, options_.head, tls_, options_.introduction, options_.limits, Deadline::after(time),
      HeadDialer::Handlers{
          .on_taken =
              [this](const std::shared_ptr<AgentConnection>& connection) {
                tell(fmt::format("the head at {} was reached", to_string(options_.head)));
                has_joined_ = true;
                service_.serve(connection);
              },
          // It differs from the other hosts, and would at each attempt, so it is not tried again.
          .on_sent_home =
              [this](const std::string& why) {
                if (has_joined_) return end_without_head(kExitUnrecoverable, why);
                end({.exit_code = kExitUnrecoverable, .sentence = why});
              },
          // Starting all hosts again resumes from what they have saved.
          .on_given_up =
              [this](const std::string& why) {
                if (!has_joined_) {
                  return end({.exit_code = kExitStopped,
                              .sentence = fmt::format("{}; start the same command on the host that --head names, with "
                                                      "--node-rank 0, and see that its port is open",
                                                      why)});
                }
                end_without_head(kExitStopped,
                                 fmt::format("the head was lost and did not come back: {}; start the same command "
                                             "on all hosts again to go on",
                                             why));
              },
          .on_failure = [this](const std::string& why) { tell(why); }});
}

void Agent::tell(const std::string& news) const {
  if (handlers_.on_news) handlers_.on_news(news);
}

// A head that was lost is not there to let this host go, and its own replicas may be gone. So the owner has to save.
void Agent::ask_to_leave(int signal) {
  is_leaving_ = true;
  if (!has_joined_) {
    return end({.exit_code = kExitStopped, .sentence = "this host was asked to leave before the head had taken it"});
  }
  // Members of the last generation are about to check in. What follows the loss also ends this host.
  if (service_.is_leaving()) return;
  if (is_head_lost()) return leave_without_head();
  service_.ask_to_leave(signal);
}

void Agent::leave_without_head() {
  dialer_.reset();
  end_without_head(kExitStopped,
                   "this host was asked to leave after it had lost the head; start the same command on all hosts again "
                   "to go on");
}

// A process may still be about to copy its state.
void Agent::end_without_head(int exit_code, const std::string& sentence) {
  when_kept(Deadline::after(kTimeToKeep),
            [this, exit_code, sentence] { end({.exit_code = exit_code, .sentence = sentence, .is_head_lost = true}); });
}

// The head may come back at once, before a process has copied its state.
void Agent::save_for_another_head() {
  when_kept(Deadline::after(kTimeToKeep), [this] {
    if (is_leaving_) return leave_without_head();
    if (handlers_.on_another_head) handlers_.on_another_head();
    dial(options_.patience);
  });
}

void Agent::when_kept(Deadline limit, const std::function<void()>& next) {
  if (!service_.is_any_state_on_its_way() || limit.has_passed()) return next();
  // Looked at again and again: nothing tells this process when a copy in shared memory is whole.
  keep_timer_.expires_after(kLookPeriod);
  keep_timer_.async_wait([this, limit, next](const boost::system::error_code& error) {
    if (!error) when_kept(limit, next);
  });
}

void Agent::end(const End& how) {
  // Kept, since the handler may end this agent.
  const auto on_over = handlers_.on_over;
  if (on_over) on_over(how);
}

}  // namespace holdfast::recovery
