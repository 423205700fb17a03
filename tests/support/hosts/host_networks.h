#pragma once

// Hosts for tests, on this machine: network namespaces with an address each, joined by a bridge in a namespace of its
// own.
//
// The namespaces have no names. They vanish with the processes in them and with the descriptors here. Programs on hosts
// are killed when the thread that started them ends. So a test that is killed leaves nothing, and tests may run at the
// same time. It needs root and `ip`.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "support/program.h"

namespace holdfast {

class HostNetworks {
 public:
  enum class Cut {
    at_the_bridge,  // as by a switch that dies: no link goes down, and both sides lose what they send without a word
    at_the_host,    // its link goes down, so it knows at once that there is no way to the others
  };

  // Why this machine has no such networks, in a sentence; empty if it has.
  static const std::string& why_not();

  // Throws std::runtime_error, with what `ip` wrote.
  explicit HostNetworks(int hosts);
  // Kills what runs on the hosts.
  ~HostNetworks();
  HostNetworks(const HostNetworks&) = delete;
  HostNetworks& operator=(const HostNetworks&) = delete;

  static std::string address_of(int host);

  // Starts a program on a host. For a thread that lives until the program may end.
  std::unique_ptr<RunningProgram> start(int host, const std::string& path,
                                        const std::vector<std::string>& arguments) const;
  // Calls `act` in a thread on a host, and waits for it. Sockets that it opens are the host's, also after it.
  void on(int host, const std::function<void()>& act) const;
  // The TCP and UDP sockets of a host: a line of the kernel's tables for each, empty where there are none.
  std::vector<std::string> sockets(int host) const;
  // The TCP ports at which something listens on a host.
  std::vector<int> listening_ports(int host) const;

  // SIGKILL to all processes of a host. None of them runs after it.
  void kill_all(int host) const;
  // Nothing gets from the host to others any more, nor from them to it.
  void cut_off(int host, Cut where) const;
  void heal(int host, Cut where) const;
  // Nothing gets from one of two hosts to the other any more, while both reach all others.
  void cut_between(int one, int other) const;
  void heal_between(int one, int other) const;

 private:
  const FileDescriptor& namespace_of(int host) const { return hosts_.at(static_cast<std::size_t>(host)); }

  FileDescriptor bridge_;
  std::vector<FileDescriptor> hosts_;
};

}  // namespace holdfast
