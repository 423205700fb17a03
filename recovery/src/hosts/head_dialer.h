#pragma once

// How an agent reaches the head: it dials until it is taken, is sent home, or its time is over. The head may start
// later than the agent, and may start again.

#include <functional>
#include <memory>
#include <string>

#include "hosts/agent_connection.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>

#include "holdfast/base/deadline.h"
#include "hosts/introduction.h"
#include "links/host_address.h"

namespace holdfast::recovery {

class HeadDialer {
 public:
  // One of the first three is called, once, and is the last call.
  struct Handlers {
    // The connection is open, and has no handlers yet.
    std::function<void(const std::shared_ptr<AgentConnection>&)> on_taken{};
    std::function<void(const std::string& why)> on_sent_home{};
    std::function<void(const std::string& why)> on_given_up{};
    // An attempt has failed, and another one follows.
    std::function<void(const std::string& why)> on_failure{};
  };

  // `io` outlives the dialer. Its destructor ends the attempt.
  HeadDialer(boost::asio::io_context& io, HostAddress head, std::shared_ptr<boost::asio::ssl::context> tls,
             Introduction introduction, const AgentConnection::Limits& limits, Deadline deadline, Handlers handlers);
  ~HeadDialer();
  HeadDialer(const HeadDialer&) = delete;
  HeadDialer& operator=(const HeadDialer&) = delete;

 private:
  struct Core;

  std::shared_ptr<Core> core_;  // completions that are queued when the dialer goes hold weak pointers to it
};

}  // namespace holdfast::recovery
