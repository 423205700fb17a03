// A server without a certificate has no handshake but the one with the key, so a client without the secret fails. A
// client must not be content with less: a stranger that poses as the server could offer a certificate instead. So the
// client checks certificates against an empty list, which no certificate passes. docs/decisions/host-connections.md

#include "hosts/tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// Says what the key is for. It is sent in clear.
constexpr std::string_view kIdentity = "holdfast-agent-1";
// The key belongs to one hash function, that of this cipher: TLS_AES_128_GCM_SHA256.
constexpr const char* kCipherSuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherNumber[] = {0x13, 0x01};

void free_secret(void*, void* secret, CRYPTO_EX_DATA*, int, long, void*) {
  if (secret == nullptr) return;
  ::OPENSSL_cleanse(secret, sizeof(Secret));
  delete static_cast<Secret*>(secret);
}

// The context owns a copy of the secret.
int secret_index() {
  static const int index = ::SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_secret);
  return index;
}

const unsigned char* identity_bytes() {
  return reinterpret_cast<const unsigned char*>(kIdentity.data());
}

// What OpenSSL calls a session is here the key and what it may be used with. Null when there is no memory.
SSL_SESSION* key_of(SSL* ssl) {
  const auto* secret = static_cast<const Secret*>(::SSL_CTX_get_ex_data(::SSL_get_SSL_CTX(ssl), secret_index()));
  const SSL_CIPHER* cipher = ::SSL_CIPHER_find(ssl, kCipherNumber);
  SSL_SESSION* session = ::SSL_SESSION_new();
  if (secret == nullptr || cipher == nullptr || session == nullptr ||
      ::SSL_SESSION_set1_master_key(session, secret->bytes.data(), secret->bytes.size()) != 1 ||
      ::SSL_SESSION_set_cipher(session, cipher) != 1 ||
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1 ||
      // The client compares it with that of the context.
      ::SSL_SESSION_set1_id_context(session, identity_bytes(), static_cast<unsigned>(kIdentity.size())) != 1) {
    ::SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

// The client offers the key. `hash` is set when the server has asked for a hash function; a wrong one fails later.
int offer_key(SSL* ssl, const EVP_MD* /*hash*/, const unsigned char** identity, std::size_t* identity_size,
              SSL_SESSION** session) {
  *session = key_of(ssl);
  *identity = identity_bytes();
  *identity_size = kIdentity.size();
  return *session == nullptr ? 0 : 1;
}

// The server looks for the key that the client offers. Without one the handshake goes on, and fails for want of a
// certificate.
int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const bool is_ours = size == kIdentity.size() && std::memcmp(identity, kIdentity.data(), size) == 0;
  *session = is_ours ? key_of(ssl) : nullptr;
  return is_ours && *session == nullptr ? 0 : 1;
}

void require(bool is_done, const char* what) {
  if (is_done) return;
  const unsigned long error = ::ERR_get_error();
  const char* reason = error == 0 ? nullptr : ::ERR_reason_error_string(error);
  throw Error(ErrorCode::unavailable, fmt::format("OpenSSL cannot protect the connections between hosts ({}): {}", what,
                                                  reason == nullptr ? "it does not say why" : reason));
}

}  // namespace

std::shared_ptr<boost::asio::ssl::context> tls_context(const Secret& secret) {
  namespace ssl = boost::asio::ssl;
  auto context = std::make_shared<ssl::context>(ssl::context::tls);
  SSL_CTX* native = context->native_handle();
  require(::SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION) == 1, "TLS 1.3");
  require(::SSL_CTX_set_max_proto_version(native, TLS1_3_VERSION) == 1, "TLS 1.3");
  require(::SSL_CTX_set_ciphersuites(native, kCipherSuite) == 1, kCipherSuite);
  auto copy = std::make_unique<Secret>(secret);
  require(secret_index() >= 0 && ::SSL_CTX_set_ex_data(native, secret_index(), copy.get()) == 1, "its data");
  copy.release();
  ::SSL_CTX_set_psk_use_session_callback(native, offer_key);
  ::SSL_CTX_set_psk_find_session_callback(native, find_key);
  // A ticket would let a peer in that no longer knows the secret.
  ::SSL_CTX_set_num_tickets(native, 0);
  ::SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // The same for exchanges of keys without Diffie-Hellman, which OpenSSL makes only where it is allowed to.
  ::SSL_CTX_clear_options(native, SSL_OP_ALLOW_NO_DHE_KEX);
  // A server that checks its peers takes a key only in a named context.
  const auto bytes = static_cast<unsigned>(kIdentity.size());
  require(::SSL_CTX_set_session_id_context(native, identity_bytes(), bytes) == 1, "its context");
  // No list of trusted certificates is loaded, so none is trusted.
  ::SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
  return context;
}

bool is_authenticated(TlsStream& stream) {
  SSL* ssl = stream.native_handle();
  // OpenSSL calls a connection with a pre-shared key reused.
  return ::SSL_session_reused(ssl) == 1 && ::SSL_get0_peer_certificate(ssl) == nullptr &&
         ::SSL_version(ssl) == TLS1_3_VERSION;
}

std::string describe_handshake(const boost::system::error_code& error) {
  if (error.category() != boost::asio::error::get_ssl_category()) return error.message();
  return fmt::format("it does not have the secret of the run, or is not Holdfast at all ({})", error.message());
}

}  // namespace holdfast::recovery
