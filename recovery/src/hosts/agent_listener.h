#pragma once

// Where the head waits for the agents of other hosts. Strangers cost it little: they are few at a time, have two
// seconds, and get nothing without the secret.

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "hosts/agent_connection.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>

#include "hosts/introduction.h"
#include "links/listening.h"

namespace holdfast::recovery {

// Messages of the head that answer an introduction.
inline constexpr const char* kTaken = "taken";
inline constexpr const char* kSentHome = "sent_home";  // why

class AgentListener {
 public:
  struct Handlers {
    // Why the agent cannot be taken although it differs in nothing; empty if it can.
    std::function<std::string(const Introduction&)> why_not{};
    // The connection is open, and has no handlers yet.
    std::function<void(const Introduction&, const std::shared_ptr<AgentConnection>&)> on_agent{};
    // A connection came to nothing. A stranger can cause many of these.
    std::function<void(const std::string& peer, const std::string& why)> on_refused{};
  };

  // Listens on `port` of all addresses of this host; 0: on a free port. `ours` is the introduction that the head would
  // make. Throws Error, which names the port, when it cannot be had. `io` outlives the listener.
  AgentListener(boost::asio::io_context& io, int port, std::shared_ptr<boost::asio::ssl::context> tls,
                Introduction ours, const AgentConnection::Limits& limits, Handlers handlers);
  ~AgentListener();
  AgentListener(const AgentListener&) = delete;
  AgentListener& operator=(const AgentListener&) = delete;

  int port() const { return listening_->port(); }
  // Connections whose agent is not introduced.
  std::size_t strangers() const;

 private:
  struct Core;

  std::shared_ptr<Core> core_;          // completions that are queued when the listener goes hold weak pointers to it
  std::optional<Listening> listening_;  // always there after construction
};

}  // namespace holdfast::recovery
