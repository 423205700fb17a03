#pragma once

// TLS 1.3 between agents, with the run's secret as a pre-shared key and no certificates. Each connection has keys of
// its own (psk_dhe_ke): somebody who learns the secret later can neither read nor resend a record of it. OpenSSL does
// all of it.

#include <memory>
#include <string>
#include <utility>  // before Asio 1.74, which does not include what it uses

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>

#include "hosts/secret.h"

namespace holdfast::recovery {

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

// For both sides of any number of connections. Throws Error{unavailable} where OpenSSL cannot do it.
std::shared_ptr<boost::asio::ssl::context> tls_context(const Secret& secret);

// Whether the handshake that has ended was made with the secret, and with nothing else.
bool is_authenticated(TlsStream& stream);

// For a user: what the failure of a handshake means.
std::string describe_handshake(const boost::system::error_code& error);

}  // namespace holdfast::recovery
