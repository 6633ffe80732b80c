// The numbers by which the backward pass orders what was recorded: last recorded, first run.
#pragma once
#include <cstdint>

namespace gradus {

/// The number that this thread's next operation gets. Each thread counts for itself. One that records a part
/// of another's graph goes on from where that one is, and that one from there: or the order of the backward
/// pass, and with it the last bits of sums of gradients, would depend on what was recorded before.
uint64_t next_sequence();
void set_next_sequence(uint64_t sequence);

}  // namespace gradus
