#pragma once

// Listening on all addresses of this host.

#include <string>
#include <utility>  // before Asio 1.74, which does not include what it uses

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace holdfast::recovery {

// Takes connections of IPv6 and, by it, of IPv4 where the system has both. 0: a free port. Throws Error{input_output}:
// "WHAT: the reason".
boost::asio::ip::tcp::acceptor listen_on(boost::asio::io_context& io, int port, const std::string& what);

}  // namespace holdfast::recovery
