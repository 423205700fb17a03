#pragma once

// Where the agent of a host takes the connections that agents of other hosts make for its replicas. A connection says
// by a token what it is for (links/link_token.h). One that comes too early waits a while; all others are closed.
//
// Gradients travel in clear: the network between the hosts has to be a trusted one. docs/decisions/hosts.md

#include <functional>
#include <memory>
#include <utility>  // before Asio 1.74, which does not include what it uses

#include <boost/asio/io_context.hpp>

#include "holdfast/base/shared_memory.h"
#include "links/link_token.h"
#include "links/listening.h"

namespace holdfast::recovery {

// For the thread that runs the io_context.
class LinkListener {
 public:
  using OnLink = std::function<void(FileDescriptor socket)>;

  // Listens on a free port of all addresses of this host. Throws Error{input_output}. `io` outlives the listener.
  explicit LinkListener(boost::asio::io_context& io);
  ~LinkListener();
  LinkListener(const LinkListener&) = delete;
  LinkListener& operator=(const LinkListener&) = delete;

  int port() const { return listening_.port(); }
  // Takes a connection with this token, once, also one that waits already. `on_link` is called later.
  void expect(const LinkToken& token, OnLink on_link);
  // From now on a connection with it is closed. Does nothing for a token that is not expected.
  void forget(const LinkToken& token);
  // How many connections have said a token, and wait for it to be expected.
  int waiting() const;

 private:
  struct Core;

  boost::asio::io_context& io_;
  std::shared_ptr<Core> core_;  // completions that are queued when the listener goes hold weak pointers to it
  Listening listening_;
};

}  // namespace holdfast::recovery
