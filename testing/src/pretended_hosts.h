#pragma once

// Several hosts that are addresses of this machine, for a program that is started once on each of them.

#include <string>
#include <vector>

namespace holdfast::resilience {

class PretendedHosts {
 public:
  // Chooses a port for the first host and makes a file with a secret, where there are several hosts. Throws Error where
  // no port is free, or no file can be made.
  explicit PretendedHosts(int hosts);
  ~PretendedHosts();
  PretendedHosts(const PretendedHosts&) = delete;
  PretendedHosts& operator=(const PretendedHosts&) = delete;

  int count() const { return hosts_; }
  // "NAME=VALUE" for the environment of the program on one host; none for a single host.
  std::vector<std::string> variables_of(int host) const;

 private:
  int hosts_;
  int port_ = 0;
  std::string secret_file_;
};

}  // namespace holdfast::resilience
