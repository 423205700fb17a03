// libcurl is optional: only this file knows it. See docs/decisions/records.md

#include "callbacks/http_post.h"

#include "holdfast/base/error.h"

#ifdef HOLDFAST_HAS_CURL
#include <curl/curl.h>

#include <memory>
#endif

namespace holdfast {

#ifdef HOLDFAST_HAS_CURL

namespace {

// Without a function of this kind libcurl writes the body to the standard output.
std::size_t ignore_body(char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

int check_cancelled(void* request, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const HttpPost*>(request)->is_cancelled() ? 1 : 0;
}

struct FreeHeaders {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

bool is_ready() {
  // Once in a process; the standard makes other threads wait.
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return ready;
}

}  // namespace

bool can_post() {
  return true;
}

HttpOutcome post(const HttpPost& request) {
  if (!is_ready()) return {.failure = "libcurl cannot be initialized"};
  const std::unique_ptr<CURL, FreeHandle> handle(curl_easy_init());
  if (!handle) return {.failure = "libcurl has no memory"};
  std::unique_ptr<curl_slist, FreeHeaders> headers;
  for (const std::string& header : request.headers) {
    // The list begins where it began, unless it was empty.
    curl_slist* const list = curl_slist_append(headers.get(), header.c_str());
    if (list == nullptr) return {.failure = "libcurl has no memory"};
    static_cast<void>(headers.release());
    headers.reset(list);
  }
  CURL* const curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
// From version 7.85 on, which deprecates the older option. Drop the other branch when no distribution has an older one.
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  // Another server must not get the headers, which may hold a secret.
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!request.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, request.ca_file.c_str());
  // Set and empty: a proxy of the environment would get the headers of a request in clear text.
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  // Signals belong to the program.
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore_body);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_cancelled);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &request);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) return {.failure = curl_easy_strerror(code)};
  HttpOutcome outcome;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &outcome.status);
  return outcome;
}

#else

bool can_post() {
  return false;
}

HttpOutcome post(const HttpPost&) {
  throw Error(ErrorCode::unsupported, "this Holdfast was built without libcurl and sends nothing by HTTP");
}

#endif

}  // namespace holdfast
