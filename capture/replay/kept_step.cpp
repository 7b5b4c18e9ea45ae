// The copies of a step in parts:
//
//     %w is state, the update writes %w2 over it     before_part() of that part copies %w
//     %t, %y = on_host(%x)                           note_results() copies %t and %y behind the node
//     back                                           give_back() writes the copy of %w; on_host is served from %t and %y
#include <tapedeck/capture/replay/kept_step.h>

#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/plan/byte_owners.h>
#include <tapedeck/capture/replay/memory/view_copies.h>
#include <tapedeck/engine/ir/op.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::replay {

// ---- once ----

void KeptStep::keep(bool on) {
  if (on) prepare();
  on_ = on;
  if (!on) forget();
}

void KeptStep::prepare() {
  if (!effect_.empty() || plan_.graph.nodes.empty()) return;
  const Graph& g = plan_.graph;
  const std::vector<ValueId> owner = byte_owners(plan_);
  effect_.assign(g.nodes.size(), kNone);
  std::int32_t effects = 0;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    if ((traits_within(g, node) & kEffect) != 0) effect_[n] = effects++;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      const Placement& p = plan_.values[owner[v]];
      if (p.where == Where::state && plan_.values[v].reason != Reason::alias) writers_.push_back({n, p.slot});
    }
  }
  results_.resize(static_cast<std::size_t>(effects));
}

// ---- around a step ----

void KeptStep::begin_step(bool in_parts) {
  if (!on_ && !active_) return;
  if (!coming_again_) forget();
  coming_again_ = false;
  active_ = on_ && in_parts;
  if (!active_) return;
  state_.assign(member_.state.size(), std::nullopt);
}

void KeptStep::forget() {
  active_ = coming_again_ = false;
  state_.clear();
  for (std::vector<Tensor>& results : results_) results.clear();
}

void KeptStep::before_part(const StepProgress& progress, const StepProgress::Cut& until) {
  if (!active_) return;
  for (const auto& [node, slot] : writers_) {
    const std::int32_t segment = progress.segment_of(node), place = progress.place(node);
    if (state_[slot] || states_.is_lost(slot) || place < progress.cut()[segment] || place >= until[segment]) continue;
    const Type& type = member_.state[slot]->type;
    state_[slot] = type.bytes() > 0 ? from_bytes(type, member_.state[slot]->base) : empty(type);
  }
}

// A part that was paused may not have come to the node that overwrites the state. The caller may write that state.
void KeptStep::after_part(const StepProgress& progress) {
  if (!active_) return;
  std::vector<bool> written(state_.size());
  for (const auto& [node, slot] : writers_) written[slot] = written[slot] || progress.has_run(node);
  for (std::size_t s = 0; s < state_.size(); ++s)
    if (!written[s]) state_[s].reset();
}

// ---- the way back ----

std::string KeptStep::why_no_way_back() const {
  if (!active_) return "the step is not kept; call keep_steps() before the step begins";
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(state_.size()); ++s) {
    const bool changed = states_.is_lost(s) || states_.overwritten(s) || (state_[s] && states_.written_by_caller(s));
    if (changed) return fmt::format("state '{}' has been written from outside since the step began", states_.names()[s]);
  }
  for (std::int32_t i = 0; i < plan_.graph.n_inputs; ++i)
    if (inputs_.is_new(i)) return fmt::format("input '{}' has been set since the step", inputs_.names()[i]);
  return "";
}

bool KeptStep::give_back() {
  if (!why_no_way_back().empty()) return false;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(state_.size()); ++s)
    if (state_[s]) states_.write_back(s, *state_[s]);
  return true;
}

// ---- what is kept ----

const Tensor* KeptStep::state(std::int32_t slot) const { return active_ && state_[slot] ? &*state_[slot] : nullptr; }

const Tensor* KeptStep::result(ValueId v) const {
  const NodeId n = plan_.graph.values[v].node;
  if (!active_ || n == kNone || !has_effect(n) || results_[effect_[n]].empty()) return nullptr;
  return &results_[effect_[n]][v - plan_.graph.nodes[n].first_output];
}

std::int64_t KeptStep::bytes() const {
  std::int64_t all = 0;
  for (const std::optional<Tensor>& t : state_) all += t ? t->bytes() : 0;
  for (const std::vector<Tensor>& results : results_)
    for (const Tensor& t : results) all += t.bytes();
  return all;
}

// ---- effects ----

bool KeptStep::serve(NodeId n, const KernelCall& call) const {
  const std::vector<Tensor>& kept = results_[effect_[n]];
  if (kept.empty()) return false;
  for (std::int32_t k = 0; k < call.n_outputs; ++k) copy_to_view(kept[k], call.outputs[k]);
  return true;
}

void KeptStep::note_results(NodeId n, const KernelCall& call) {
  std::vector<Tensor> results;
  for (std::int32_t k = 0; k < call.n_outputs; ++k)
    results.push_back(copy_of_view(call.outputs[k], plan_.graph.values[plan_.graph.nodes[n].first_output + k].type));
  results_[effect_[n]] = std::move(results);
}

}  // namespace tapedeck::replay
