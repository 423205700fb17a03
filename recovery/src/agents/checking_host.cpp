// A host that is checked judges nothing. It says what it has and what it could reach, and host 0 compares, so that all
// problems stand in one list. docs/decisions/agents.md

#include "agents/checking_host.h"

#include <utility>

#include <fmt/format.h>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {

CheckingHost::CheckingHost(boost::asio::io_context& io, CheckingOptions options, const Secret& secret, OnOver on_over)
    : io_(io),
      options_(std::move(options)),
      on_over_(std::move(on_over)),
      links_(io),
      timer_(io),
      dialer_(io, options_.head, tls_context(secret), introduction_of_check(options_, links_.port()), options_.limits,
              Deadline::after(options_.join_timeout),
              {.on_taken = [this](const std::shared_ptr<AgentConnection>& connection) { serve(connection); },
               .on_sent_home = [this](const std::string& why) { end(false, why); },
               .on_given_up =
                   [this](const std::string& why) {
                     end(false,
                         fmt::format("{}; start the same command on host 0, open its port {}, and give --secret a "
                                     "copy of the same file on all hosts",
                                     why, options_.head.port));
                   },
               .on_failure = [this](const std::string& why) { tell(why); }}) {
  // Host 0 waits for others as long as this one has waited for it, and then for connections.
  timer_.expires_after(2 * options_.join_timeout + 2 * options_.link_timeout);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) end(false, "host 0 gave no verdict in time; see what it says there");
  });
}

CheckingHost::~CheckingHost() {
  if (connection_ != nullptr) connection_->close();
}

void CheckingHost::serve(std::shared_ptr<AgentConnection> connection) {
  tell(fmt::format("the head at {} was reached", to_string(options_.head)));
  connection_ = std::move(connection);
  connection_->set_handlers({.on_message = [this](const nlohmann::json& message) { take(message); },
                             .on_closed =
                                 [this](const std::string& why) {
                                   end(false, fmt::format("host 0 ended the check: {}; see what it says there", why));
                                 }});
}

void CheckingHost::take(const nlohmann::json& message) {
  // A member that is missing throws, and that ends the connection (AgentConnection::take_messages()).
  if (message.at("kind") == kQuestion) {
    HostFacts facts = options_.facts;
    facts.folder_problem = why_folder_is_of_no_use(facts, message.at("mark").get<std::string>(), options_.host);
    connection_->send(facts_message(facts));
  } else if (message.at("kind") == kLinks) {
    connect(parse_links(message));
  } else if (message.at("kind") == kVerdict) {
    end(message.at("is_well").get<bool>(), message.at("sentence").get<std::string>());
  }
}

void CheckingHost::connect(const std::vector<LinkPeer>& peers) {
  for (const LinkPeer& peer : peers) {
    const LinkToken token{.key = peer.key};
    // The host with the higher number dials, so that two hosts have one connection. It alone reports how that went.
    if (options_.host < peer.host) {
      links_.expect(token, [](FileDescriptor) {});
      continue;
    }
    const auto say = [this, host = peer.host](const std::string& problem) {
      // An attempt may end after the verdict, when the connection is closed.
      if (!is_over_) connection_->send({{"kind", kLinked}, {"host", host}, {"problem", problem}});
    };
    dialers_.push_back(std::make_unique<LinkDialer>(
        io_, peer.address, token, options_.reach_timeout,
        LinkDialer::Handlers{.on_link = [say](FileDescriptor) { say(""); }, .on_given_up = say}));
  }
}

// Attempts to reach the head fail alike, many times.
void CheckingHost::tell(const std::string& news) {
  if (std::exchange(last_news_, news) != news && options_.on_news) options_.on_news(news);
}

void CheckingHost::end(bool is_well, const std::string& sentence) {
  // The first end counts: the timer or a dialer may be done a moment after it.
  if (std::exchange(is_over_, true)) return;
  timer_.cancel();
  if (connection_ != nullptr) connection_->close();
  on_over_({.host = options_.host, .sentence = sentence, .is_well = is_well});
}

}  // namespace holdfast::recovery
