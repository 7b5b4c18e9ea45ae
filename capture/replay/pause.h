// Pauses a part of a step behind one of its nodes. Only a part whose segments run one after the other can be paused.
#pragma once

#include <tapedeck/capture/replay/finite.h>
#include <tapedeck/engine/ir/graph.h>

#include <atomic>
#include <optional>

namespace tapedeck::replay {

struct Pause {
  bool at_nan = false, at_infinity = false;
  const std::atomic<bool>* asked = nullptr;  // may be null

  // Called behind each node that has a kernel call. True if the part ends here.
  bool heed(NodeId n, const KernelCall& call) {
    if (at_nan || at_infinity) found = find_not_finite(call, at_nan, at_infinity);
    if (!found && !(asked && asked->load(std::memory_order_relaxed))) return false;
    behind = n;
    return true;
  }

  NodeId behind = kNone;  // where the part was paused; kNone: it came to its end
  std::optional<NotFinite> found = {};
};

}  // namespace tapedeck::replay
