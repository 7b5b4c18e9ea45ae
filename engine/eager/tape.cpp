// The functions of tape.h except backward() and those of the random state: scopes, statistics of the tape, and checkpoint
// regions. A scope sets a member of the thread's state, and its destructor restores the old value.
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <fmt/format.h>

#include <unordered_set>

namespace tapedeck {

using detail::TensorImpl;

NoGrad::NoGrad() : before_(std::exchange(thread_state().grad_enabled, false)) {}
NoGrad::~NoGrad() { thread_state().grad_enabled = before_; }

AbstractMode::AbstractMode(bool on) : before_(std::exchange(thread_state().abstract, on)) {}
AbstractMode::~AbstractMode() { thread_state().abstract = before_; }
bool abstract_mode() { return thread_state().abstract; }

Autocast::Autocast(DType dtype, bool on, Site site)
    : before_(std::exchange(thread_state().autocast, on)), dtype_before_(thread_state().autocast_dtype) {
  if (dtype != DType::f16 && dtype != DType::bf16) {
    thread_state().autocast = before_;
    throw UsageError(error_text("autocast", fmt::format("casts to f16 or bf16, not {}", dtype_name(dtype)), site));
  }
  thread_state().autocast_dtype = dtype;
}
Autocast::~Autocast() {
  thread_state().autocast = before_;
  thread_state().autocast_dtype = dtype_before_;
}

PathScope::PathScope(const std::string& name) : before_(thread_state().path) {
  thread_state().path = before_.empty() ? Name(name) : Name(before_.str() + "." + name);
}
PathScope::~PathScope() { thread_state().path = before_; }

TapeStats tape_stats() {
  const Recorder& tape = *thread_state().tape;
  TapeStats stats;
  stats.nodes = tape.graph.node_count() - tape.dead_nodes;
  stats.values = tape.graph.value_count() - tape.dead_values;
  std::unordered_set<const detail::Storage*> seen;
  for (const TapeValue& v : tape.info)
    if (v.saved && seen.insert(v.saved).second) stats.saved_bytes += v.saved->bytes;
  for (const NodeInfo& note : tape.notes)
    if (note.extra)
      for (const Tensor& t : note.extra->kept)
        if (!t.abstract() && seen.insert(t.impl()->storage).second) stats.saved_bytes += t.impl()->storage->bytes;
  return stats;
}

// ---- checkpoint regions ----

Tensor checkpoint(const std::function<Tensor()>& fn) {
  ThreadState& state = thread_state();
  if (state.region != kNone) return fn();  // a region inside another region is part of the outer one
  Recorder& tape = *state.tape;
  const Recorder::Hold hold(tape);  // no node is dropped until the region ends
  const auto region = static_cast<std::int32_t>(tape.regions.size());
  tape.regions.push_back({tape.graph.node_count(), tape.graph.node_count(), false});
  Scoped<std::int32_t> scope(state.region, region);
  // An empty region stays if another region has opened since, inside of keep_here().
  struct DropIfEmpty {
    Recorder& tape;
    ~DropIfEmpty() {
      if (tape.regions.size() - 1 == region && tape.regions[region].first == tape.regions[region].last) tape.regions.pop_back();
    }
    std::size_t region;
  } drop_if_empty{tape, static_cast<std::size_t>(region)};
  return fn();
}

}  // namespace tapedeck
