#pragma once

// One request of HTTP, for callbacks that report to a server.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace holdfast {

struct HttpPost {
  std::string url;  // http:// or https://
  std::string body;
  std::vector<std::string> headers;  // "Name: value"
  std::string ca_file;               // of certificates; empty: those of the system
  std::chrono::milliseconds timeout{5000};
  std::function<bool()> is_cancelled = [] { return false; };  // asked about once a second
};

struct HttpOutcome {
  long status = 0;      // of the answer; 0 without one
  std::string failure;  // why no answer came, without anything of the request
};

// Whether this build has libcurl; without it, post() must not be called.
bool can_post();
// Sends it and reads the answer to its end, whose body is ignored. Follows no redirection, verifies the certificate and
// the name of an https server, and uses nothing of the environment. Blocks until the timeout at most. Any thread.
HttpOutcome post(const HttpPost& request);

}  // namespace holdfast
