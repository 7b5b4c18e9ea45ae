// Branches and loops. A region becomes the graph inside a node of ONNX. The values that a region captures are read there by the
// names that they have outside.
//
//       cond       If
//       scan       Scan; the number of the pass, if anything reads it, is one more scanned operand
//       while      Loop, whose body computes the condition of the next pass; the first condition stands before the node
//       loop_grad  a Loop that runs the passes again and keeps the carried values, and a Loop that walks back over them
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/kernels/attrs/control.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

const Type kIndex{DType::i64, {}};
const Type kTruth{DType::boolean, {}};

Terms operands(N& n, std::size_t first, std::size_t count) {
  Terms terms;
  for (std::size_t i = first; i < first + count; ++i) terms.push_back(n[static_cast<int>(i)]);
  return terms;
}

template <class... Lists>
Terms together(const Lists&... lists) {
  Terms all;
  (all.insert(all.end(), lists.begin(), lists.end()), ...);
  return all;
}

std::vector<Type> operand_types(const N& n) {
  std::vector<Type> types;
  for (int i = 0; i < n.count(); ++i) types.push_back(n.in(i));
  return types;
}

std::vector<Type> result_types(const tapedeck::Graph& region) {
  std::vector<Type> types;
  for (const ValueId v : region.outputs) types.push_back(region.values[static_cast<std::size_t>(v)].type);
  return types;
}

std::vector<DType> dtypes_of(const Terms& terms) {
  std::vector<DType> dtypes;
  for (const Term& t : terms) dtypes.push_back(t.dtype());
  return dtypes;
}

bool reads(const tapedeck::Graph& region, ValueId v) {
  const auto has = [v](const auto& list) { return std::find(list.begin(), list.end(), v) != list.end(); };
  const auto node_reads = [&](const tapedeck::Node& node) { return has(region.inputs(node)); };
  return has(region.outputs) || std::any_of(region.nodes.begin(), region.nodes.end(), node_reads);
}

// ---- branches ----

Named branch(N& n, const char* attribute, const tapedeck::Graph& region, const Terms& inputs) {
  InnerGraph graph(n);
  const Terms results = n.inlined(region, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(results[i], result_types(region)[i]);
  return graph.end(attribute);
}

Terms cond(N& n) {
  const Terms inputs = operands(n, 1, static_cast<std::size_t>(n.count()) - 1);
  std::vector<DType> dtypes;
  for (const Type& t : result_types(n.region(0))) dtypes.push_back(t.dtype);
  if (dtypes.empty()) return {};
  const Named yes = branch(n, "then_branch", n.region(0), inputs), no = branch(n, "else_branch", n.region(1), inputs);
  return n.add_several("If", {n[0]}, dtypes, {yes, no});
}

// ---- parts of loops ----

// Slice i of a stack.
Term slice_of(const Term& stack, const Term& i) { return gathered(stack, i, 0); }

// A stack with one slice replaced.
Term with_slice(const Term& stack, const Term& i, const Term& slice, const Type& type) {
  return stack.at().add("ScatterND", {stack, reshaped(i, Integers{1, 1}), reshaped(slice, stack_type(1, type).shape)},
                        stack.dtype());
}

Term empty_stack(N& n, std::int64_t trips, const Type& slice) {
  return n.filled(stack_type(trips, slice).shape, 0, slice.dtype);
}

// A Loop while it grows: the values that it carries, and its body, which stays open until run().
class Loop {
 public:
  // An empty `most` sets no bound, and an empty `first` condition is true.
  Loop(N& n, Term most, Term first) : n_(n), operands_{std::move(most), std::move(first)}, body_(n) {
    i_ = body_.input("i", kIndex);
    goes_on_ = body_.input("goes_on", kTruth);
  }
  // Carries a value; its name in the body.
  Term carry(const Term& begin, const Type& type) {
    operands_.push_back(begin);
    types_.push_back(type);
    return body_.input("carried", type);
  }
  const Term& i() const { return i_; }
  const Term& goes_on() const { return goes_on_; }
  // Ends the body, whose results are the next condition, the next carried values, and slices that the node stacks. The carried
  // values after the last pass, and the stacks.
  Terms run(const Term& goes_on, const Terms& next, const Terms& slices = {}, const std::vector<Type>& slice_types = {}) {
    body_.output(goes_on, kTruth);
    for (std::size_t i = 0; i < next.size(); ++i) body_.output(next[i], types_[i]);
    for (std::size_t i = 0; i < slices.size(); ++i) body_.output(slices[i], slice_types[i]);
    const Named body = body_.end("body");
    return n_.add_several("Loop", operands_, dtypes_of(together(next, slices)), {body});
  }

 private:
  N& n_;
  Terms operands_;
  InnerGraph body_;
  Term i_, goes_on_;
  std::vector<Type> types_;
};

// ---- scan ----

// A scan that makes no pass.
Terms unchanged(N& n, const LoopLayout& l, const tapedeck::Graph& body) {
  Terms results = operands(n, 0, l.carried);
  for (std::size_t i = l.carried; i < body.outputs.size(); ++i) results.push_back(empty_stack(n, 0, result_types(body)[i]));
  return results;
}

Terms scan(N& n) {
  const auto& a = n.attributes<LoopAttrs>();
  const tapedeck::Graph& body = n.region(0);
  const LoopLayout l = layout_of(a, operand_types(n), body);
  if (body.outputs.empty()) return {};
  if (l.trips == 0) return unchanged(n, l, body);
  Terms given = operands(n, 0, l.carried + l.scanned);
  const bool counts = l.scanned == 0 || reads(body, 0) || n.model().draws_others();
  if (counts) given.push_back(counted(n, l.trips));
  InnerGraph graph(n);
  Terms inputs;
  for (std::size_t i = 0; i < l.carried; ++i) inputs.push_back(graph.input("carried", n.in(static_cast<int>(i))));
  for (std::size_t i = l.carried; i < l.carried + l.scanned; ++i)
    inputs.push_back(graph.input("slice", slice_type(n.in(static_cast<int>(i)))));
  const Term number = counts ? graph.input("i", kIndex) : Term();
  const Terms results = n.inlined(body, together(Terms{number}, inputs, operands(n, l.carried + l.scanned, l.captured)));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(results[i], result_types(body)[i]);
  const auto slices = static_cast<std::int64_t>(given.size() - l.carried);
  Attributes attributes = {graph.end("body"), {"num_scan_inputs", slices}};
  if (a.reverse) attributes.emplace_back("scan_input_directions", Integers(static_cast<std::size_t>(slices), 1));
  if (a.reverse && l.stacked > 0) attributes.emplace_back("scan_output_directions", Integers(l.stacked, 1));
  return n.add_several("Scan", given, dtypes_of(results), attributes);
}

// ---- while ----

// Whether places that are values are read or written, which may be out of range.
bool reads_places(const tapedeck::Graph& region) {
  return std::any_of(region.nodes.begin(), region.nodes.end(), [&](const tapedeck::Node& node) {
    if (node.op->is(kElementwise) || node.op->is(kView) || node.op->is(kBroadcast)) return false;
    const auto in = region.inputs(node);
    return node.n_regions > 0 || std::any_of(in.begin(), in.end(), [&](ValueId v) {
             const DType dtype = region.values[static_cast<std::size_t>(v)].type.dtype;
             return dtype == DType::i32 || dtype == DType::i64;
           });
  });
}

// The condition of pass i. ONNX computes one more than the bound of the loop has passes. If its places could then be out of
// range, it is computed only below the bound.
Term condition_of(N& n, const Term& i, const Terms& rest) {
  const tapedeck::Graph& region = n.region(0);
  const std::int64_t most = n.attributes<LoopAttrs>().trips;
  if (most < 0 || !reads_places(region)) return n.inlined(region, together(Terms{i}, rest))[0];
  const Named yes = branch(n, "then_branch", region, together(Terms{i}, rest));
  InnerGraph otherwise(n);
  otherwise.output(n.number(0, DType::boolean), kTruth);
  const Named no = otherwise.end("else_branch");  // before the comparison, which belongs to the graph around
  const Term below = i < static_cast<double>(most);
  return n.add("If", {below}, DType::boolean, {yes, no});
}

Terms while_loop(N& n) {
  const auto& a = n.attributes<LoopAttrs>();
  const tapedeck::Graph& body = n.region(1);
  const LoopLayout l = layout_of(a, operand_types(n), body);
  const std::vector<Type> types = result_types(body);
  const Term zero = n.integers({}, {0});
  if (a.trips == 0) return together(Terms{zero}, unchanged(n, l, body));
  const Terms begin = operands(n, 0, l.carried), captured = operands(n, l.carried, l.captured);
  Terms stacks;
  for (std::size_t i = l.carried; i < types.size(); ++i) stacks.push_back(empty_stack(n, a.trips, types[i]));
  const Term first = condition_of(n, zero, together(begin, captured));
  Loop loop(n, a.trips < 0 ? Term() : n.integers({}, {a.trips}), first);
  Terms carried;
  loop.carry(zero, kIndex);
  for (std::size_t i = 0; i < l.carried; ++i) carried.push_back(loop.carry(begin[i], types[i]));
  for (std::size_t i = 0; i < stacks.size(); ++i) stacks[i] = loop.carry(stacks[i], stack_type(a.trips, types[l.carried + i]));
  const Terms made = n.inlined(body, together(Terms{loop.i()}, carried, captured));
  Terms next = {loop.i() + 1};
  next.insert(next.end(), made.begin(), made.end());
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    Term& stack = next[1 + l.carried + i];
    stack = with_slice(stacks[i], loop.i(), stack, types[l.carried + i]);
  }
  const Terms now(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(l.carried));
  const Term goes_on = condition_of(n, next[0], together(now, captured));
  return loop.run(goes_on, next);
}

// ---- the gradient of a loop ----

// The operands of a loop_grad (ops/control.h), as terms.
struct LoopGrad {
  explicit LoopGrad(N& node) : n(node), a(node.attributes<LoopGradAttrs>()), needs(a.needs.view()) {
    most = most_passes(a, operand_types(n));
    carried = static_cast<std::size_t>(a.carried);
    scanned = static_cast<std::size_t>(a.scanned);
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (!is_floating(type(i).dtype)) continue;
      if (i < carried || (i >= carried + scanned && needs[i] != '0'))
        handed.push_back(i);
      else if (i < carried + scanned && needs[i] != '0')
        sliced.push_back(i);
    }
  }
  const Type& type(std::size_t i) const { return n.in(static_cast<int>(i) + 1); }  // of an operand of the loop
  Term operand(std::size_t i) const { return n[static_cast<int>(i) + 1]; }
  // The passes of a reversed loop begin with the last slice.
  Term place(const Term& pass) const { return a.reverse ? n[0] - 1 - pass : pass; }
  // The inputs of the first region, and the first ones of the second.
  Terms inputs(const Term& place, const Terms& c) const {
    Terms all = together(Terms{place}, c);
    for (std::size_t i = carried; i < carried + scanned; ++i) all.push_back(slice_of(operand(i), place));
    return together(all, operands(n, 1 + carried + scanned, needs.size() - carried - scanned));
  }
  // The gradients that the walk begins with.
  Terms begin() const {
    Terms all;
    for (const std::size_t i : handed) {
      const Term given = n[static_cast<int>(1 + needs.size() + all.size())];
      const bool fresh = i >= carried && needs[i] == '2';  // it is -0, and 0 if there is no pass
      all.push_back(fresh ? choose(is(n[0], 0), 0, given) : given);
    }
    return all;
  }
  Terms stacked_slices(const Term& place) const {
    Terms all;
    for (int i = static_cast<int>(1 + needs.size() + handed.size()); i < n.count(); ++i) all.push_back(slice_of(n[i], place));
    return all;
  }

  N& n;
  const LoopGradAttrs& a;
  std::string_view needs;
  std::int64_t most = -1;
  std::size_t carried = 0, scanned = 0;
  std::vector<std::size_t> handed, sliced;  // operands whose gradients go from pass to pass, and those with a slice in each
};

// The carried values before each pass, stacked. Without a bound only a run knows the size of the stacks.
Terms kept_values(const LoopGrad& g) {
  if (g.carried == 0) return {};
  N& n = g.n;
  Terms stacks, carried;
  std::vector<Type> types;
  for (std::size_t i = 0; i < g.carried; ++i) {
    types.push_back(g.type(i));
    if (g.most >= 0) stacks.push_back(empty_stack(n, g.most, types[i]));
  }
  Loop loop(n, n[0], {});
  for (std::size_t i = 0; i < g.carried; ++i) carried.push_back(loop.carry(g.operand(i), types[i]));
  for (std::size_t i = 0; i < stacks.size(); ++i) stacks[i] = loop.carry(stacks[i], stack_type(g.most, types[i]));
  Terms next = n.inlined(n.region(0), g.inputs(g.place(loop.i()), carried));
  next.resize(g.carried);
  for (std::size_t i = 0; i < stacks.size(); ++i) next.push_back(with_slice(stacks[i], loop.i(), carried[i], types[i]));
  const Terms results = g.most >= 0 ? loop.run(loop.goes_on(), next) : loop.run(loop.goes_on(), next, carried, types);
  return {results.begin() + static_cast<std::ptrdiff_t>(g.carried), results.end()};
}

Terms loop_grad(N& n) {
  const LoopGrad g(n);
  const Terms kept = kept_values(g), begin = g.begin();
  Terms stacks, d, c;
  for (const std::size_t i : g.sliced) stacks.push_back(n.filled(g.type(i).shape, 0, g.type(i).dtype));
  Loop loop(n, n[0], {});
  for (std::size_t i = 0; i < begin.size(); ++i) d.push_back(loop.carry(begin[i], g.type(g.handed[i])));
  for (std::size_t i = 0; i < stacks.size(); ++i) stacks[i] = loop.carry(stacks[i], g.type(g.sliced[i]));
  const Term pass = n[0] - 1 - loop.i(), place = g.place(pass);
  for (const Term& stack : kept) c.push_back(slice_of(stack, pass));
  Terms next = n.inlined(n.region(1), together(g.inputs(place, c), d, g.stacked_slices(place)));
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    Term& slice = next[begin.size() + i];
    slice = with_slice(stacks[i], place, slice, slice_type(g.type(g.sliced[i])));
  }
  return loop.run(loop.goes_on(), next);
}

}  // namespace

std::vector<ExportOp> control_exports() {
  return {
      composed("cond", cond),
      composed("scan", scan),
      composed("while", while_loop),
      composed("loop_grad", loop_grad),
  };
}

}  // namespace tapedeck::onnx
