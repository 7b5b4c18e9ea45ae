// Gradients of loops and branches (control_gradient.h). The gradient of one pass comes from gradient(graph), applied to the
// body. It is then run for all passes in reverse:
//
//       scan forward     pass 0, pass 1, pass 2      keeps the residuals r0, r1, r2
//       scan backward    d carried <- gradient of pass 2 (r2) <- pass 1 (r1) <- pass 0 (r0)
//
// If residuals were not kept, a loop_grad node runs the loop again and then the same gradients of passes.
#include <tapedeck/engine/control/control_gradient.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/extract.h>

#include <algorithm>
#include <optional>

namespace tapedeck {
namespace {

using Values = std::vector<ValueId>;

bool floating(const Graph& g, ValueId v) { return is_floating(g.values[v].type.dtype); }

// One pass of a loop and its gradient, in one graph. The inputs of the graph are i, carried, slices, captured, d carried, d
// captured and d stacked. Its outputs are d carried, d captured and d slices. ("d x" is the gradient of x.) The lists hold
// values of `graph`.
struct PassGradient {
  Graph graph;
  Values moved;                             // the value of `graph` for each value of the body
  Values inputs;                            // i, carried, slices, captured
  Values d_carried, d_captured, d_stacked;  // inputs of `graph`
  Values results;                           // d carried, d captured, d slices
  std::size_t n_body_nodes = 0;
};

// Generates the gradient of one pass. `needs` tells for each operand of the loop whether it needs a gradient. Only the first
// `stacked` of the stacked results have gradients.
PassGradient gradient_of_pass(const Graph& body, const LoopLayout& l, const std::vector<bool>& needs, std::size_t stacked) {
  Values targets, wrt;
  auto input = [&](std::size_t operand) { return static_cast<ValueId>(operand + 1); };
  std::size_t n_carried = 0, n_captured = 0;
  for (std::size_t j = 0; j < l.carried; ++j)
    if (floating(body, input(j))) {
      targets.push_back(body.outputs[j]);
      wrt.push_back(input(j));
      ++n_carried;
    }
  for (std::size_t j = l.carried + l.scanned; j < l.operands(); ++j)
    if (needs[j] && floating(body, input(j))) {
      targets.push_back(input(j));  // the gradient from the other passes is added to the gradient from this pass
      wrt.push_back(input(j));
      ++n_captured;
    }
  for (std::size_t j = 0; j < stacked; ++j)
    if (floating(body, body.outputs[l.carried + j])) targets.push_back(body.outputs[l.carried + j]);
  for (std::size_t j = l.carried; j < l.carried + l.scanned; ++j)
    if (needs[j] && floating(body, input(j))) wrt.push_back(input(j));
  GraphGradientOptions options;
  options.heads_as_inputs = true;
  options.allow_unreached = true;
  GraphGradient made = gradient(body, targets, wrt, options);
  PassGradient p;
  p.graph = std::move(made.graph);
  p.moved = std::move(made.moved);
  p.results = std::move(made.gradients);
  for (ValueId v = 0; v < static_cast<ValueId>(l.operands() + 1); ++v) p.inputs.push_back(v);
  ValueId head = static_cast<ValueId>(l.operands() + 1);
  for (std::size_t k = 0; k < targets.size(); ++k, ++head)
    (k < n_carried ? p.d_carried : k < n_carried + n_captured ? p.d_captured : p.d_stacked).push_back(head);
  return p;
}

template <class... Lists>
Values joined(const Lists&... lists) {
  Values all;
  (all.insert(all.end(), lists.begin(), lists.end()), ...);
  return all;
}

// For each node, whether it belongs to the forward pass. These are the nodes of the body and the parts of vjps that run in
// the forward pass.
std::vector<bool> forward_nodes(const PassGradient& p) {
  std::vector<bool> forward(p.graph.nodes.size());
  for (std::size_t n = 0; n < forward.size(); ++n) forward[n] = p.graph.nodes[n].origin.phase != Phase::backward;
  for (ValueId v : p.moved)
    if (const NodeId n = v == kNone ? kNone : p.graph.values[v].node; n != kNone) forward[n] = true;
  return forward;
}

// Whether a pass of the gradient computes the node again instead of reading a kept value. This is so if the node computes
// nothing, if it lies in a checkpoint region, or if it is cheap and has the same value in every pass.
bool computed_again(const Graph& g, const Node& node, const std::vector<bool>& varies) {
  if (g.literal(node) || node.op->is(kView) || node.origin.region != kNone) return true;
  const auto in = g.inputs(node);
  return node.op->is(kCheap) && std::none_of(in.begin(), in.end(), [&](ValueId v) { return varies[v]; });
}

// For each value: whether it differs from pass to pass.
std::vector<bool> varying(const Graph& g, std::size_t first_captured, std::size_t end_captured) {
  std::vector<bool> varies(g.values.size());
  for (ValueId v = 0; v < g.n_inputs; ++v)
    varies[v] = static_cast<std::size_t>(v) < first_captured || static_cast<std::size_t>(v) >= end_captured;
  for (const Node& node : g.nodes) {
    const auto in = g.inputs(node);
    const bool any = std::any_of(in.begin(), in.end(), [&](ValueId v) { return varies[v]; });
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) varies[v] = any;
  }
  return varies;
}

// The values of the forward pass that the gradient reads and that must be kept. Operands of the pass exist anyway and need
// not be kept.
Values residuals_of(const PassGradient& p, const LoopLayout& l) {
  const Graph& g = p.graph;
  const std::vector<bool> forward = forward_nodes(p), varies = varying(g, 1 + l.carried + l.scanned, 1 + l.operands());
  std::vector<bool> needed(g.values.size());
  Values kept;
  for (ValueId v : p.results) needed[v] = true;
  for (NodeId n = g.node_count(); n-- > 0;) {
    const Node& node = g.nodes[n];
    bool runs = false;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      if (!needed[v]) continue;
      if (forward[n] && !computed_again(g, node, varies))
        kept.push_back(v);
      else
        runs = true;
    }
    if (!runs) continue;
    for (ValueId v : g.inputs(node)) needed[v] = true;
  }
  for (std::size_t j = 0; j < l.carried; ++j)
    if (needed[j + 1]) kept.push_back(static_cast<ValueId>(j + 1));
  std::sort(kept.begin(), kept.end());
  return kept;
}

// The first term of the gradient of a captured operand. It is the gradient so far, if there is one. Otherwise it is -0, which
// changes no sum; but if the passes only add to windows, it is 0 outside of the windows. *fresh tells whether there was no
// gradient so far.
Tensor begin_of(Vjp& b, std::size_t operand, const PassGradient& p, std::size_t k, bool* fresh) {
  const Type type = b.xs[operand].type();
  *fresh = false;
  if (const Tensor so_far = b.take(static_cast<int>(operand)); so_far.defined()) return so_far;
  *fresh = true;
  std::vector<SliceAttrs> windows;
  ValueId v = p.results[p.d_carried.size() + k];
  for (; v != p.d_captured[k]; v = p.graph.inputs(p.graph.nodes[p.graph.values[v].node])[0]) {
    const NodeId n = p.graph.values[v].node;
    if (n == kNone || p.graph.nodes[n].op != &ops::slice_assign) return full(type.shape, -0.0, type.dtype, b.site());
    windows.push_back(*static_cast<const SliceAttrs*>(p.graph.attributes(p.graph.nodes[n])));
  }
  Tensor begin = full(type.shape, 0, type.dtype, b.site());
  for (const SliceAttrs& at : windows) {
    Shape shape = type.shape;
    for (int d = 0; d < shape.rank; ++d) {
      const std::int64_t step = at.steps.size > d ? at.steps[d] : 1;
      shape.sizes[d] = (at.stops[d] - at.starts[d] + step - 1) / step;
    }
    const Tensor negative = full(shape, -0.0, type.dtype, b.site());
    begin = apply(ops::slice_assign, {&begin, &negative}, &at, b.site());
  }
  return begin;
}

LoopLayout layout_in(const Vjp& b, const LoopAttrs& attrs, const Graph& body) {
  std::vector<Type> types;
  for (const Tensor& t : b.xs) types.push_back(t.type());
  return layout_of(attrs, types, body);
}

std::vector<bool> needs_of(const Vjp& b) {
  std::vector<bool> needs;
  for (std::size_t i = 0; i < b.xs.size(); ++i) needs.push_back(b.needs(static_cast<int>(i)) && is_floating(b.xs[i].dtype()));
  return needs;
}

// Gives each operand its gradient. `results` are in the order of PassGradient::results; the gradients of slices are already
// stacked.
void hand_out(Vjp& b, const LoopLayout& l, const std::vector<bool>& needs, std::span<const Tensor> results) {
  std::size_t next = 0;
  for (std::size_t j = 0; j < l.carried; ++j)
    if (is_floating(b.xs[j].dtype())) b.dx(static_cast<int>(j), results[next++]);
  for (std::size_t j = l.carried + l.scanned; j < l.operands(); ++j)
    if (needs[j]) b.dx(static_cast<int>(j), results[next++]);
  for (std::size_t j = l.carried; j < l.carried + l.scanned; ++j)
    if (needs[j]) b.dx(static_cast<int>(j), results[next++]);
}

// The gradients that go into the gradient of the last pass: those of the carried results, and the first terms for captured
// operands. *fresh tells for each operand whether it had no gradient so far.
std::vector<Tensor> first_handed(Vjp& b, const LoopLayout& l, const std::vector<bool>& needs, const PassGradient& p,
                                 std::size_t first_result, std::vector<bool>* fresh) {
  fresh->assign(l.operands(), false);
  std::vector<Tensor> handed;
  for (std::size_t j = 0; j < l.carried; ++j)
    if (is_floating(b.xs[j].dtype())) handed.push_back(b.dys[first_result + j]);
  std::size_t k = 0;
  for (std::size_t j = l.carried + l.scanned; j < l.operands(); ++j)
    if (needs[j]) {
      bool begins = false;
      handed.push_back(begin_of(b, j, p, k++, &begins));
      (*fresh)[j] = begins;
      if (begins && l.trips == 0) handed.back() = full(b.xs[j].shape(), 0, b.xs[j].dtype(), b.site());
    }
  return handed;
}

std::vector<Tensor> stacked_gradients(const Vjp& b, const LoopLayout& l, std::size_t first_result, std::size_t stacked) {
  std::vector<Tensor> all;
  for (std::size_t j = 0; j < stacked; ++j)
    if (is_floating(b.ys[first_result + l.carried + j].dtype())) all.push_back(b.dys[first_result + l.carried + j]);
  return all;
}

Region region_of(Graph graph) { return std::make_shared<const Graph>(std::move(graph)); }

Graph without_residuals(const Graph& body, const LoopLayout& l, std::size_t stacked) {
  Values inputs;
  for (ValueId v = 0; v < body.n_inputs; ++v) inputs.push_back(v);
  return extract(body, inputs, std::span<const ValueId>(body.outputs).first(l.carried + stacked));
}

void run_again(Vjp& b, const LoopAttrs& attrs, const LoopLayout& l, const Graph& body, std::size_t first_result,
               std::size_t stacked, const Tensor& trips) {
  const std::vector<bool> needs = needs_of(b);
  const PassGradient p = gradient_of_pass(body, l, needs, stacked);
  LoopGradAttrs grad;
  grad.carried = attrs.carried;
  grad.scanned = attrs.scanned;
  grad.trips = l.trips;
  grad.reverse = attrs.reverse;
  grad.checkpoint = attrs.checkpoint;
  std::vector<bool> fresh;
  const std::vector<Tensor> handed = first_handed(b, l, needs, p, first_result, &fresh);
  std::string text;
  for (std::size_t j = 0; j < needs.size(); ++j) text += !needs[j] ? '0' : fresh[j] ? '2' : '1';
  grad.needs = Name(text);
  const Region regions[2] = {region_of(without_residuals(body, l, stacked)),
                             region_of(extract(p.graph, joined(p.inputs, p.d_carried, p.d_captured, p.d_stacked), p.results))};
  std::vector<Tensor> operands{trips};
  for (const auto& list : {b.xs, handed, stacked_gradients(b, l, first_result, stacked)})
    operands.insert(operands.end(), list.begin(), list.end());
  hand_out(b, l, needs, apply_regions(ops::loop_grad, regions, operands, &grad, b.site()));
}

// The gradient of a scan as a scan in the other direction. It carries the gradients from pass to pass, and scans the kept
// values, the slices, and the gradients of the stacked results. Returns false if the passes did not keep a value that the
// gradient needs.
bool scan_back(Vjp& b, const LoopAttrs& attrs, const LoopLayout& l, const Graph& body, std::size_t stacked) {
  const std::vector<bool> needs = needs_of(b);
  const PassGradient p = gradient_of_pass(body, l, needs, stacked);
  Values kept;
  std::vector<Tensor> kept_stacks;
  for (std::size_t j = l.carried + stacked; j < body.outputs.size(); ++j) {
    kept.push_back(p.moved[body.outputs[j]]);
    kept_stacks.push_back(b.ys[j]);
  }
  const Values stop = joined(kept, p.inputs, p.d_carried, p.d_captured, p.d_stacked);
  const std::vector<bool> needed = needed_values(p.graph, stop, p.results);
  for (std::size_t j = 0; j < l.carried; ++j)
    if (needed[j + 1] && std::find(kept.begin(), kept.end(), static_cast<ValueId>(j + 1)) == kept.end()) return false;
  Values slices, captured;
  std::vector<Tensor> scanned, others;
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (needed[kept[k]] && std::find(slices.begin(), slices.end(), kept[k]) == slices.end()) {
      slices.push_back(kept[k]);
      scanned.push_back(kept_stacks[k]);
    }
  for (std::size_t j = l.carried; j < l.operands(); ++j) {
    if (!needed[j + 1]) continue;
    const bool slice = j < l.carried + l.scanned;
    (slice ? slices : captured).push_back(static_cast<ValueId>(j + 1));
    (slice ? scanned : others).push_back(b.xs[j]);
  }
  const std::vector<Tensor> d_stacked = stacked_gradients(b, l, 0, stacked);
  scanned.insert(scanned.end(), d_stacked.begin(), d_stacked.end());
  const Region region =
      region_of(extract(p.graph, joined(Values{0}, p.d_carried, p.d_captured, slices, p.d_stacked, captured), p.results));
  std::vector<bool> fresh;
  std::vector<Tensor> operands = first_handed(b, l, needs, p, 0, &fresh);
  LoopAttrs back;
  back.carried = static_cast<std::int64_t>(operands.size());
  back.scanned = static_cast<std::int64_t>(scanned.size());
  back.trips = l.trips;
  back.reverse = !attrs.reverse;
  operands.insert(operands.end(), scanned.begin(), scanned.end());
  operands.insert(operands.end(), others.begin(), others.end());
  hand_out(b, l, needs, apply_regions(ops::scan, {&region, 1}, operands, &back, b.site()));
  return true;
}

}  // namespace

Region with_residuals(const Region& body, const LoopLayout& l, const std::vector<bool>& needs, std::int64_t* residuals) {
  const PassGradient p = gradient_of_pass(*body, l, needs, l.stacked);
  const Values kept = residuals_of(p, l);
  Values outputs;
  for (ValueId v : body->outputs) outputs.push_back(p.moved[v]);
  *residuals = static_cast<std::int64_t>(kept.size());
  return region_of(extract(p.graph, p.inputs, joined(outputs, kept)));
}

void vjp_while(Vjp& b) {
  const auto& attrs = b.attributes<LoopAttrs>();
  const Graph& body = *b.regions[1];
  const LoopLayout l = layout_in(b, attrs, body);
  run_again(b, attrs, l, body, 1, l.stacked, b.y(0));
}

void vjp_scan(Vjp& b) {
  const auto& attrs = b.attributes<LoopAttrs>();
  const Graph& body = *b.regions[0];
  const LoopLayout l = layout_in(b, attrs, body);
  const std::size_t stacked = l.stacked - static_cast<std::size_t>(attrs.residuals);
  if (attrs.checkpoint == 0 && scan_back(b, attrs, l, body, stacked)) return;
  run_again(b, attrs, l, body, 0, stacked, full({}, static_cast<double>(l.trips), DType::i64, b.site()));
}

// The gradient of a cond. The gradient that an operand has so far goes into the branches, which add to it. If there is none
// so far, a branch that does not use the operand gives zeros for it.
void vjp_cond(Vjp& b) {
  const std::size_t n = b.xs.size() - 1;
  std::vector<bool> read(n);
  std::vector<Tensor> begun;
  Values begun_operands;
  for (std::size_t j = 0; j < n; ++j)
    if (const Tensor so_far =
            b.needs(static_cast<int>(j + 1)) && is_floating(b.xs[j + 1].dtype()) ? b.take(static_cast<int>(j + 1)) : Tensor();
        so_far.defined()) {
      begun.push_back(so_far);
      begun_operands.push_back(static_cast<ValueId>(j));
    }
  GraphGradient made[2];
  Values heads[2];
  for (int branch = 0; branch < 2; ++branch) {
    const Graph& region = *b.regions[branch];
    Values targets, wrt;
    for (ValueId v : region.outputs)
      if (floating(region, v)) targets.push_back(v);
    targets.insert(targets.begin(), begun_operands.begin(), begun_operands.end());
    for (std::size_t j = 0; j < n; ++j)
      if (b.needs(static_cast<int>(j + 1)) && is_floating(b.xs[j + 1].dtype())) wrt.push_back(static_cast<ValueId>(j));
    GraphGradientOptions options;
    options.heads_as_inputs = true;
    options.allow_unreached = true;
    made[branch] = gradient(region, targets, wrt, options);
    for (std::size_t k = 0; k < targets.size(); ++k) heads[branch].push_back(static_cast<ValueId>(n + k));
    const std::vector<bool> needed = needed_values(made[branch].graph, {}, made[branch].gradients);
    for (std::size_t j = 0; j < n; ++j) read[j] = read[j] || needed[j];
  }
  Values inputs;
  std::vector<Tensor> operands{b.x(0)};
  for (std::size_t j = 0; j < n; ++j)
    if (read[j]) {
      inputs.push_back(static_cast<ValueId>(j));
      operands.push_back(b.xs[j + 1]);
    }
  operands.insert(operands.end(), begun.begin(), begun.end());
  for (std::size_t k = 0; k < b.ys.size(); ++k)
    if (is_floating(b.ys[k].dtype())) operands.push_back(b.dys[k]);
  const Region regions[2] = {region_of(extract(made[0].graph, joined(inputs, heads[0]), made[0].gradients)),
                             region_of(extract(made[1].graph, joined(inputs, heads[1]), made[1].gradients))};
  const std::vector<Tensor> results = apply_regions(ops::cond, regions, operands, nullptr, b.site());
  std::size_t next = 0;
  for (std::size_t j = 0; j < n; ++j)
    if (b.needs(static_cast<int>(j + 1)) && is_floating(b.xs[j + 1].dtype())) b.dx(static_cast<int>(j + 1), results[next++]);
}

}  // namespace tapedeck
