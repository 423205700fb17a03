#pragma once

// What tests of connections between hosts share: an io_context whose events come until something is true, and two ends
// on 127.0.0.1.

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "hosts/agent_listener.h"  // first, for the sake of Asio

#include "holdfast/base/deadline.h"
#include "hosts/head_dialer.h"

namespace holdfast::recovery {

// Far more than anything takes here.
inline constexpr std::chrono::seconds kSurely(20);

class Loopback {
 public:
  boost::asio::io_context io{1};

  // Ends the test where `is_true` does not become true. What it asks of the other end of a connection makes no event
  // here, so no wait for one is long.
  void run_until(const std::function<bool()>& is_true, const std::string& what) {
    const Deadline deadline = Deadline::after(kSurely);
    while (!is_true()) {
      io.restart();
      io.run_one_until(std::min(deadline.moment(), std::chrono::steady_clock::now() + std::chrono::milliseconds(10)));
      if (is_true()) return;
      if (deadline.has_passed()) throw std::runtime_error(what + " did not happen");
    }
  }
};

inline Secret secret_of(unsigned char first) {
  Secret secret;
  secret.bytes.fill(first);
  return secret;
}

inline Introduction introduction_of(int host) {
  return {.version = "0.1.0", .run_id = "812", .hosts = 3, .host = host, .replicas = 2, .program = "a1b2"};
}

}  // namespace holdfast::recovery
