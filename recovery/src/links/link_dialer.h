#pragma once

// Makes one connection to the agent of another host, for a replica of each (links/link_listener.h). It dials again
// while the other host is not ready for it: replicas there may have more to load. The end of a generation ends it.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>  // before Asio 1.74, which does not include what it uses

#include <boost/asio/io_context.hpp>

#include "holdfast/base/shared_memory.h"
#include "links/host_address.h"
#include "links/link_token.h"

namespace holdfast::recovery {

// For the thread that runs the io_context.
class LinkDialer {
 public:
  // One of them is called, once, and is the last call.
  struct Handlers {
    std::function<void(FileDescriptor socket)> on_link{};
    // Nothing answered there for `patience`.
    std::function<void(const std::string& why)> on_given_up{};
  };

  // `io` outlives the dialer, whose destructor ends the attempt.
  LinkDialer(boost::asio::io_context& io, HostAddress address, const LinkToken& token,
             std::chrono::milliseconds patience, Handlers handlers);
  ~LinkDialer();
  LinkDialer(const LinkDialer&) = delete;
  LinkDialer& operator=(const LinkDialer&) = delete;

 private:
  struct Core;

  std::shared_ptr<Core> core_;  // completions that are queued when the dialer goes hold weak pointers to it
};

}  // namespace holdfast::recovery
