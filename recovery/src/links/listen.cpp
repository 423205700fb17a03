#include "links/listen.h"

#include <fmt/format.h>
#include <boost/asio/ip/v6_only.hpp>

#include "holdfast/base/error.h"

namespace holdfast::recovery {

using boost::asio::ip::tcp;

tcp::acceptor listen_on(boost::asio::io_context& io, int port, const std::string& what) {
  boost::system::error_code error;
  for (const tcp& protocol : {tcp::v6(), tcp::v4()}) {
    tcp::acceptor acceptor(io);
    error = {};
    acceptor.open(protocol, error);
    if (error) continue;
    // A head that starts again must not wait until the connections of the one before it are forgotten.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    boost::system::error_code ignored;
    if (protocol == tcp::v6()) acceptor.set_option(boost::asio::ip::v6_only(false), ignored);
    if (!error) acceptor.bind(tcp::endpoint(protocol, static_cast<unsigned short>(port)), error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) return acceptor;
  }
  throw Error(ErrorCode::input_output, fmt::format("{}: {}", what, error.message()));
}

}  // namespace holdfast::recovery
