#pragma once

// A host that is checked, and is not host 0 (agents/checking_head.h): it dials host 0, answers its questions, connects
// with the hosts that it is told, and gets the verdict.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/checking_head.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "hosts/head_dialer.h"
#include "links/link_dialer.h"

namespace holdfast::recovery {

// For the thread that runs the io_context.
class CheckingHost {
 public:
  // The last call, once.
  using OnOver = std::function<void(const HostsReport&)>;

  // Throws Error where nothing can listen. `io` outlives it.
  CheckingHost(boost::asio::io_context& io, CheckingOptions options, const Secret& secret, OnOver on_over);
  ~CheckingHost();
  CheckingHost(const CheckingHost&) = delete;
  CheckingHost& operator=(const CheckingHost&) = delete;

 private:
  void serve(std::shared_ptr<AgentConnection> connection);
  void take(const nlohmann::json& message);
  void connect(const std::vector<LinkPeer>& peers);
  void tell(const std::string& news);
  void end(bool is_well, const std::string& sentence);

  boost::asio::io_context& io_;
  const CheckingOptions options_;
  const OnOver on_over_;
  LinkListener links_;
  boost::asio::steady_timer timer_;
  std::string last_news_;
  bool is_over_ = false;
  std::shared_ptr<AgentConnection> connection_;  // null: host 0 was not reached yet
  std::vector<std::unique_ptr<LinkDialer>> dialers_;
  HeadDialer dialer_;  // last: its handlers use all other members
};

}  // namespace holdfast::recovery
