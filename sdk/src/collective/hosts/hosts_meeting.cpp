#include "collective/hosts/hosts_meeting.h"

#include <utility>

#include "collective/hosts/hosts_communicator.h"
#include "collective/memory/memory_communicator.h"

namespace holdfast {

std::unique_ptr<Communicator> HostsMeeting::connect(const CommunicatorShape& shape) {
  Admission place = exchange_(shape, blocks_.blocks_for(shape));
  if (place.layout.hosts() == 1) return std::make_unique<MemoryCommunicator>(shape, std::move(place.memory));
  std::vector<std::unique_ptr<Link>> links;
  for (FileDescriptor& socket : place.sockets) {
    links.push_back(socket.is_open() ? std::make_unique<SocketLink>(std::move(socket), options_) : nullptr);
  }
  return std::make_unique<HostsCommunicator>(shape, HostConnections{.layout = place.layout,
                                                                    .generation = place.generation,
                                                                    .memory = std::move(place.memory),
                                                                    .links = std::move(links),
                                                                    .cancel_event = std::move(place.cancel_event)});
}

}  // namespace holdfast
