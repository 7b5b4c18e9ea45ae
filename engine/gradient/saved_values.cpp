// The functions of gradients.h that ask about the tape (saved() and depends()), and custom_gradient().
//
// saved() goes over the nodes of the tape and joins the entries of values that share a storage.
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/core_ops.h>

#include <fmt/format.h>

#include <map>

namespace tapedeck {

using detail::TensorImpl;

std::vector<Tensor> custom_gradient(const std::vector<Tensor>& xs, const CustomForward& forward, CustomVjp backward,
                                    Site site) {
  for (const Tensor& x : xs)
    if (!x.defined()) throw TypeError(error_text("custom_gradient", "an operand is undefined", site));
  std::vector<Tensor> ys;
  {
    const NoGrad no_grad;
    ys = forward(xs);
  }
  for (const Tensor& y : ys)
    if (!y.defined()) throw TypeError(error_text("custom_gradient", "the forward function returned an undefined tensor", site));
  Recorder& tape = *thread_state().tape;
  bool needs = false;
  for (const Tensor& x : xs) needs = needs || tape.needs_grad(*x.impl());
  if (!needs || !thread_state().grad_enabled) return ys;
  std::vector<TensorImpl*> in, out;
  for (const Tensor& x : xs) in.push_back(x.impl());
  for (const Tensor& y : ys) in.push_back(y.impl());
  std::vector<Tensor> results;
  for (const Tensor& y : ys) {
    results.push_back(Tensor(detail::new_view(*y.impl(), y.shape(), 0, y.strides())));
    out.push_back(results.back().impl());
  }
  SaveMask saves = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) saves |= operand_bit(i);
  for (std::size_t k = 0; k < ys.size(); ++k) saves |= result_bit(k);
  const NodeId n = tape.record(ops::custom_gradient, in, nullptr, out, true, &saving(saves), site);
  tape.notes[n].more().custom = std::move(backward);
  return results;
}

bool depends(const Tensor& y, const Tensor& x) {
  if (!y.defined() || !x.defined()) throw TypeError(error_text("depends", "a tensor is undefined", {}));
  if (y.impl() == x.impl()) return true;
  Recorder& tape = *thread_state().tape;
  if (!tape.owns(*y.impl())) return false;
  const ValueId last = tape.bound_value(*y.impl());
  std::vector<bool> from(static_cast<std::size_t>(tape.graph.value_count()));
  for (ValueId v = 0; v <= last; ++v) {
    const std::int32_t outside = tape.info[v].outside;
    const NodeId n = tape.graph.values[v].node;
    bool is = tape.owns(*x.impl()) ? tape.bound_value(*x.impl()) == v
                                   : outside != kNone && tape.outside[outside].tensor.impl() == x.impl();
    if (n != kNone && !tape.info[v].cut && !tape.notes[n].dead)
      for (ValueId operand : tape.graph.inputs(tape.graph.nodes[n])) is = is || from[operand];
    from[v] = is;
  }
  return from[last];
}

namespace {

class SavedList {
 public:
  explicit SavedList(const Recorder& tape) : tape_(tape) {}

  std::vector<Saved> list() {
    for (NodeId n = 0; n < tape_.graph.node_count(); ++n) {
      const NodeInfo& note = tape_.notes[n];
      if (note.dead || note.released) continue;
      if (note.extra)
        for (const Tensor& t : note.extra->kept)
          if (!t.abstract()) add(t.impl()->storage, t.type(), "forward part", n);
      add_operands(n, note.saves());
    }
    return std::move(all_);
  }

 private:
  void add_operands(NodeId n, SaveMask saves) {
    const Node& node = tape_.graph.nodes[n];
    const auto in = tape_.graph.inputs(node);
    const bool region = node.origin.region != kNone;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (region ? !tape_.made_inside(node.origin.region, in[i]) : (saves & operand_bit(i)) != 0)
        add(in[i], fmt::format("{}operand {}", region ? "checkpoint: " : "", i), n);
    for (std::int32_t k = 0; k < node.n_outputs && !region; ++k)
      if (saves & result_bit(static_cast<std::size_t>(k)))
        add(node.first_output + k, fmt::format("result{}", node.n_outputs > 1 ? fmt::format(" {}", k) : ""), n);
  }
  void add(ValueId v, const std::string& what, NodeId n) {
    const TapeValue& value = tape_.info[v];
    if (value.saved) add(value.saved, tape_.graph.values[v].type, what, n);
  }
  void add(const detail::Storage* storage, const Type& type, const std::string& what, NodeId n) {
    const Site site = tape_.notes[n].site;
    const std::string reason = fmt::format("{} of '{}' at {}:{}", what, tape_.graph.nodes[n].op->name, site.file, site.line);
    const auto [it, fresh] = index_.emplace(storage, all_.size());
    if (fresh)
      all_.push_back({type, storage->bytes, reason});
    else
      all_[it->second].reason += "; " + reason;
  }

  const Recorder& tape_;
  std::map<const detail::Storage*, std::size_t> index_;
  std::vector<Saved> all_;
};

}  // namespace

std::vector<Saved> saved() { return SavedList(*thread_state().tape).list(); }

}  // namespace tapedeck
