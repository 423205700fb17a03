#pragma once

// A meeting of ranks on several hosts. Agents of the hosts tell each rank who is where, and hand it the sockets of its
// lane; this room does not know how. Where all ranks are on one host, no socket is needed and the communicator is
// MemoryCommunicator. See docs/decisions/hosts.md.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collective/hosts/host_layout.h"
#include "collective/hosts/socket_link.h"
#include "collective/meeting.h"
#include "collective/memory/kept_blocks.h"
#include "collective/memory/shared_blocks.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {

class HostsMeeting final : public Meeting {
 public:
  // What a rank is told and given to take part in one generation.
  struct Admission {
    HostLayout layout;
    // Another one in each generation of a run, also after a new start: peers refuse what comes from an older one.
    std::uint64_t generation = 0;
    SharedBlocks::Memory memory;          // of the ranks of this host, by local rank
    std::vector<FileDescriptor> sockets;  // by host, connected, of a rank on a lane; that of this host is -1
    FileDescriptor cancel_event;          // readable once the generation has ended; may be missing
  };
  // Shows this rank's blocks to the others of its host, and returns its admission. May block, and throw
  // GenerationEnded.
  using Exchange =
      std::function<Admission(const CommunicatorShape& shape, const std::shared_ptr<SharedMemory>& blocks)>;

  explicit HostsMeeting(Exchange exchange, const SocketLinkOptions& options = {})
      : exchange_(std::move(exchange)), options_(options) {}

  void prepare(const CommunicatorShape& shape, int used_slots) override { blocks_.prepare(shape, used_slots); }
  std::unique_ptr<Communicator> connect(const CommunicatorShape& shape) override;

 private:
  const Exchange exchange_;
  const SocketLinkOptions options_;
  KeptBlocks blocks_;
};

}  // namespace holdfast
