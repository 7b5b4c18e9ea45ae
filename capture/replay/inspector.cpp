// A value that is gone is computed again from leaves: values whose bytes are there, inputs, state as it was before the step,
// constants, and the kept results of nodes with effects.
//
//     nodes_for    walks back from the value to leaves and lists the nodes in between
//     run          runs these nodes through eager dispatch; a leaf is copied when its first reader comes
#include <tapedeck/capture/replay/inspector.h>

#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tapedeck::replay {

namespace {

// The tensors of a computation, with the bytes that they hold together. Views share their bytes.
class HeldTensors {
 public:
  explicit HeldTensors(std::size_t values) : tensors_(values) {}

  const Tensor& operator[](ValueId v) const { return tensors_[v]; }
  void put(ValueId v, Tensor tensor) {
    const detail::Storage* storage = tensor.impl()->storage;
    if (storage && users_[storage]++ == 0) bytes_ += storage->bytes;
    peak_ = std::max(peak_, bytes_);
    tensors_[v] = std::move(tensor);
  }
  void drop(ValueId v) {
    const detail::Storage* storage = tensors_[v].impl()->storage;
    if (storage && --users_[storage] == 0) {
      users_.erase(storage);
      bytes_ -= storage->bytes;
    }
    tensors_[v] = Tensor();
  }
  void note_workspace(std::int64_t bytes) { peak_ = std::max(peak_, bytes_ + bytes); }
  std::int64_t peak_bytes() const { return peak_; }

 private:
  std::vector<Tensor> tensors_;  // by value
  std::unordered_map<const detail::Storage*, std::int32_t> users_;
  std::int64_t bytes_ = 0, peak_ = 0;
};

Tensor dense_copy(const Tensor& t) {
  Tensor copy = empty(t.type());
  t.copy_to(copy.impl()->data(), static_cast<std::size_t>(copy.bytes()), dtype_size(copy.dtype()));
  return copy;
}

}  // namespace

Inspector::Inspector(const Plan& plan, const Buffers& buffers, const InputSlots& inputs, const StateSlots& states,
                     const KeptStep& kept, StepProgress& progress, ByteUses& uses, const Results& results)
    : plan_(plan),
      buffers_(buffers),
      inputs_(inputs),
      states_(states),
      kept_(kept),
      progress_(progress),
      uses_(uses),
      results_(results) {}

Inspected Inspector::inspect(ValueId v) const {
  const Graph& g = plan_.graph;
  const auto copied = [](Tensor value) {
    const std::int64_t bytes = value.bytes();
    return Inspected{std::move(value), 0, bytes};
  };
  if (g.is_state(v))
    if (const Tensor* before = kept_.state(v - g.n_inputs)) return copied(dense_copy(*before));
  results_.check_computed(v);
  if (const Tensor* kept = kept_.result(v)) return copied(dense_copy(*kept));
  const ValueId own = uses_.owner(v);
  if (own != v && g.is_input(own) && inputs_.is_new(own)) cannot(own, "it has been set since the step");
  if (results_.why_gone(v).empty()) return copied(buffers_.read(v));
  if (!results_.holds_step() || g.values[v].node == kNone) return copied(results_.value(v));  // throws the reason
  return run(nodes_for(v), v);
}

// ---- leaves ----

// A view of state or of an input is computed from that; a view of another value is a leaf if the bytes of that are there.
bool Inspector::is_leaf(ValueId v, const std::vector<bool>& intact) const {
  const Graph& g = plan_.graph;
  const NodeId maker = g.values[v].node;
  if (maker == kNone || g.literal(g.nodes[maker])) return true;
  if (kept_.has_effect(maker) && kept_.result(v)) return true;
  const ValueId own = uses_.owner(v);
  const bool made = g.values[own].node != kNone && !g.literal(g.nodes[g.values[own].node]);
  return made && intact[own] && results_.why_gone(v, false).empty();
}

Tensor Inspector::leaf(ValueId v) const {
  const Graph& g = plan_.graph;
  if (g.is_state(v)) return state_before_step(v);
  if (g.is_input(v) && inputs_.is_new(v)) cannot(v, "it has been set since the step");
  if (g.is_input(v) && progress_.complete() && buffers_.is_shared(buffers_.table().input(v)))
    cannot(v, "an executor that shares its buffer may have set it since the step");
  if (const Tensor* kept = g.values[v].node == kNone ? nullptr : kept_.result(v)) return *kept;
  return buffers_.read(v);
}

Tensor Inspector::state_before_step(ValueId v) const {
  const std::int32_t slot = v - plan_.graph.n_inputs;
  if (const Tensor* before = kept_.state(slot)) return *before;
  if (const NodeId n = uses_.overwriter(v); n != kNone)
    cannot(v, fmt::format("`{}` has overwritten it; keep_steps() keeps what a step overwrites", plan_.graph.node_text(n)));
  if (states_.is_lost(slot) || states_.overwritten(slot) || states_.written_by_caller(slot))
    cannot(v, "it has been written from outside since the step began");
  return buffers_.read(v);
}

void Inspector::cannot(ValueId needed, const std::string& why) const {
  throw ExecutionError(fmt::format("the value is gone and cannot be computed again: that needs %{}, and {}",
                                   plan_.graph.value_name(needed), why));
}

// ---- the computation ----

Inspector::Again Inspector::nodes_for(ValueId v) const {
  const Graph& g = plan_.graph;
  const std::vector<bool> intact = uses_.intact();
  Again again;
  again.readers.assign(g.values.size(), 0);
  std::vector<bool> listed(g.nodes.size());
  std::vector<ValueId> todo = {v};
  ++again.readers[v];
  while (!todo.empty()) {
    const ValueId at = todo.back();
    todo.pop_back();
    const NodeId n = g.values[at].node;
    if (is_leaf(at, intact) || listed[n]) continue;
    if (kept_.has_effect(n) || (traits_within(g, g.nodes[n]) & kEffect) != 0)
      cannot(at, fmt::format("`{}` has an effect, so it runs once; keep_steps() keeps its results", g.node_text(n)));
    listed[n] = true;
    again.nodes.push_back(n);
    for (const ValueId w : g.inputs(g.nodes[n]))
      if (again.readers[w]++ == 0) todo.push_back(w);
  }
  std::sort(again.nodes.begin(), again.nodes.end());
  return again;
}

Inspected Inspector::run(const Again& again, ValueId v) const {
  const Graph& g = plan_.graph;
  HeldTensors held(g.values.size());
  std::vector<std::int32_t> readers = again.readers;
  std::vector<Tensor> operands;
  for (const NodeId n : again.nodes) {
    const Node& node = g.nodes[n];
    for (const ValueId w : g.inputs(node)) {
      if (!held[w].defined()) held.put(w, leaf(w));
      operands.push_back(held[w]);
    }
    std::vector<Tensor> results = interpret_node(g, node, operands);
    operands.clear();
    held.note_workspace(plan_.workspace[n].bytes);
    for (std::int32_t k = 0; k < node.n_outputs; ++k)
      if (readers[node.first_output + k] > 0) held.put(node.first_output + k, std::move(results[k]));
    for (const ValueId w : g.inputs(node))
      if (--readers[w] == 0) held.drop(w);
  }
  return {dense_copy(held[v]), static_cast<std::int32_t>(again.nodes.size()), held.peak_bytes() + g.values[v].type.bytes()};
}

}  // namespace tapedeck::replay
