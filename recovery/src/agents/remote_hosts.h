#pragma once

// The head's end of a run over several hosts: it listens for their agents, and has a RemoteHost for each.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hosts/agent_listener.h"  // first, for the sake of Asio

#include <boost/asio/steady_timer.hpp>

#include "agents/remote_host.h"
#include "hosts/introduction.h"
#include "hosts/other_hosts.h"
#include "hosts/secret.h"
#include "links/host_address.h"

namespace holdfast::recovery {

struct HeadOptions {
  HostAddress head{};           // by which the other hosts know the head's host; it listens at this port
  Introduction introduction{};  // that the head would make
  AgentConnection::Limits limits{};
  std::shared_ptr<HeadFolder> folder{};  // its run directory, which agents compare with theirs; null: they do not
};

class RemoteHosts final : public OtherHosts {
 public:
  // Throws Error{invalid_argument} for times that cannot be, Error{unavailable} where OpenSSL cannot do what is needed.
  RemoteHosts(HeadOptions options, const Secret& secret);

  void open(boost::asio::io_context& io, Handlers handlers) override;
  HostAgent& agent(int host) override { return *of(host).remote; }
  HostAddress links_of(int host, int own_port) const override;
  void end_run(int exit_code, const std::string& sentence) override;

  // Where it listens, once it is open.
  int port() const { return listener_->port(); }

 private:
  struct Host {
    std::unique_ptr<RemoteHost> remote{};
    std::unique_ptr<boost::asio::steady_timer> fence_timer{};
    HostAddress links{};
    std::string agent{};  // Introduction::agent
    bool has_joined = false;
  };

  Host& of(int host) { return hosts_.at(static_cast<std::size_t>(host - 1)); }
  void add_host(int host);
  void note_refused(const std::string& peer, const std::string& why);
  void wait_for_fence(int host, BootTime fenced_at);

  const HeadOptions options_;
  const std::shared_ptr<boost::asio::ssl::context> tls_;
  boost::asio::io_context* io_ = nullptr;
  Handlers handlers_;
  std::vector<Host> hosts_;     // from number 1 on
  std::set<std::string> told_;  // why agents were refused, as far as it was shown
  std::unique_ptr<AgentListener> listener_;
  const std::shared_ptr<const bool> is_alive_ = std::make_shared<const bool>(true);
};

}  // namespace holdfast::recovery
