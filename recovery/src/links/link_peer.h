#pragma once

// Another host that has members of a generation.

#include "links/host_address.h"
#include "links/link_token.h"

namespace holdfast::recovery {

struct LinkPeer {
  int host = 0;           // its number
  HostAddress address{};  // where its agent takes connections of the others
  LinkKey key{};          // that this host and that one have for the connections between them
};

}  // namespace holdfast::recovery
