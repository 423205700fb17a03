#pragma once

namespace holdfast::resilience {

// A TCP port that nothing uses at any address of this machine, as one that listens at all of them needs it. The system
// gives it to no connection, so another program gets it before the caller does only by asking for its number. Throws
// Error{unavailable} where none is found.
int free_port();

}  // namespace holdfast::resilience
