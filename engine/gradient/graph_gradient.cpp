// The gradient of a graph. It puts the graph on a capturing recorder, walks over it as eager backward walks over a tape, and
// makes a graph of the given nodes and the recorded ones:
//
//       given nodes | nodes that the walk recorded    ->    given nodes, each with its forward parts | backward nodes in use
#include <tapedeck/engine/gradient/graph_gradient.h>

#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/gradient/backward_walk.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/site_note.h>
#include <tapedeck/engine/ir/unique_names.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

[[noreturn]] void fail_usage(const std::string& message) { throw UsageError(error_text("gradient", message, {})); }
[[noreturn]] void fail_type(const std::string& message) { throw TypeError(error_text("gradient", message, {})); }

// Hides the caller's modes from the walk: no autocast, no module path and no checkpoint region.
class OwnState {
 public:
  explicit OwnState(Recorder* tape)
      : state_(thread_state()),
        tape_(state_.tape, tape),
        grad_(state_.grad_enabled, false),
        abstract_(state_.abstract, true),
        autocast_(state_.autocast, false),
        phase_(state_.phase, Phase::backward),
        twin_(state_.twin, kNone),
        path_(state_.path, Name()),
        site_(state_.site, Site()),
        region_(state_.region, kNone),
        calls_(state_.calls, nullptr) {}

 private:
  ThreadState& state_;
  Scoped<Recorder*> tape_;
  Scoped<bool> grad_, abstract_, autocast_;
  Scoped<Phase> phase_;
  Scoped<NodeId> twin_;
  Scoped<Name> path_;
  Scoped<Site> site_;
  Scoped<std::int32_t> region_;
  Scoped<VjpCalls*> calls_;
};

class Generator {
 public:
  Generator(const Graph& graph, std::span<const ValueId> targets, std::span<const ValueId> wrt,
            const GraphGradientOptions& options)
      : given_(graph), targets_(targets), wrt_(wrt), options_(options), names_(graph) {}

  GraphGradient run() {
    check();
    put_on_tape();
    {
      const OwnState own(&tape_);
      walk();
    }
    mark_live();
    return lay_out();
  }

 private:
  GradRequest request(std::size_t i) const { return options_.requests.empty() ? GradRequest::write : options_.requests[i]; }
  ValueId add_to(std::size_t i) const { return options_.add_to.empty() ? kNone : options_.add_to[i]; }
  const Type& type_of(ValueId v) const { return given_.values[v].type; }
  std::string text_of(ValueId v) const { return fmt::format("%{}: {}", given_.value_name(v), to_string(type_of(v))); }
  NodeId recorded_from() const { return given_.node_count(); }

  void check() const;
  void check_value(ValueId v, const char* what) const;
  void check_real(ValueId v, const char* what) const;
  void put_on_tape();
  void mark_needed();
  Tensor handle(ValueId v);
  Tensor new_input(const char* prefix, ValueId v);
  Tensor head(std::size_t i);
  void walk();
  void settle_results(const std::vector<ValueId>& asked, std::vector<Tensor> results);
  void mark_live();
  GraphGradient lay_out();
  void insert_inputs(Rewriter* to) const;
  void copy_recorded(Rewriter* to, NodeId n, NodeId twin);
  void add_constants(Rewriter* to, NodeId n);
  std::string node_name(const Node& node) const;

  const Graph& given_;
  const std::span<const ValueId> targets_, wrt_;
  const GraphGradientOptions& options_;
  UniqueNames names_;
  Recorder tape_{true};
  std::vector<ForwardPart> forward_parts_;
  std::vector<std::pair<ValueId, Name>> new_inputs_;  // values of the tape that become inputs (heads, for example)
  std::vector<ValueId> results_;                      // for each wrt: its gradient, a value of the tape
  std::vector<bool> live_;                            // for each value of the tape: whether a gradient depends on it
};

// ---- checking the request ----

void Generator::check_value(ValueId v, const char* what) const {
  if (v < 0 || v >= given_.value_count())
    fail_usage(fmt::format("there is no value {} to be a {}: the graph has {}", v, what, given_.value_count()));
}

void Generator::check_real(ValueId v, const char* what) const {
  check_value(v, what);
  if (!is_floating(type_of(v).dtype))
    fail_type(fmt::format("the {} {} is not of a floating type: no gradient", what, text_of(v)));
}

void Generator::check() const {
  const auto parallel = [](std::size_t n, std::size_t to, const char* what, const char* of) {
    if (n != 0 && n != to) fail_usage(fmt::format("{} {} for {} {}", n, what, to, of));
  };
  parallel(options_.heads.size(), targets_.size(), "head gradients", "targets");
  parallel(options_.requests.size(), wrt_.size(), "requests", "wrts");
  parallel(options_.add_to.size(), wrt_.size(), "values to add to", "wrts");
  if (options_.heads_as_inputs && !options_.heads.empty()) fail_usage("head gradients are either given or inputs");
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    check_real(targets_[i], "target");
    if (options_.heads.empty() || options_.heads[i] == kNone) continue;
    check_value(options_.heads[i], "head gradient");
    if (type_of(options_.heads[i]) != type_of(targets_[i]))
      fail_type(
          fmt::format("the head gradient {} does not fit the target {}", text_of(options_.heads[i]), text_of(targets_[i])));
  }
  for (std::size_t i = 0; i < wrt_.size(); ++i) {
    check_real(wrt_[i], "wrt");
    if (add_to(i) == kNone) continue;
    check_value(add_to(i), "value to add to");
    if (type_of(add_to(i)) != type_of(wrt_[i]))
      fail_type(fmt::format("{} cannot be added to {}", text_of(wrt_[i]), text_of(add_to(i))));
  }
}

// ---- the walk ----

void Generator::put_on_tape() {
  // The tape grows to about two or three times the length of the graph. Memory is reserved at once, because large pools that
  // grow cause page faults.
  tape_.graph.nodes.reserve(4 * given_.nodes.size());
  tape_.graph.values.reserve(4 * given_.values.size());
  tape_.graph = given_;
  tape_.info.reserve(4 * given_.values.size());
  tape_.notes.reserve(4 * given_.nodes.size());
  tape_.info.resize(given_.values.size());
  tape_.notes.resize(given_.nodes.size());
  for (std::size_t n = 0; n < given_.nodes.size(); ++n) tape_.notes[n].site = site_of(given_.nodes[n].origin);
  mark_needed();
}

// Marks the values through which a gradient flows: all values that are computed from a wrt.
void Generator::mark_needed() {
  for (std::size_t i = 0; i < wrt_.size(); ++i)
    if (request(i) != GradRequest::none) tape_.info[wrt_[i]].needs_grad = true;
  for (const Node& node : given_.nodes) {
    if (node.op->is(kNoGradient)) continue;
    const auto in = given_.inputs(node);
    if (std::none_of(in.begin(), in.end(), [&](ValueId v) { return tape_.info[v].needs_grad; })) continue;
    for (std::int32_t k = 0; k < node.n_outputs; ++k)
      if (is_floating(type_of(node.first_output + k).dtype)) tape_.info[node.first_output + k].needs_grad = true;
  }
}

Tensor Generator::handle(ValueId v) {
  const Tensor t = abstract_tensor(tape_.graph.values[v].type);
  tape_.bind(t.impl(), v);
  return t;
}

Tensor Generator::new_input(const char* prefix, ValueId v) {
  const Tensor t = abstract_tensor(type_of(v));
  const ValueId id = tape_.declare(t.impl(), {});
  new_inputs_.push_back({id, names_.unique(prefix + given_.value_name(v))});
  return handle(id);
}

Tensor Generator::head(std::size_t i) {
  if (options_.heads_as_inputs) return new_input("grad.", targets_[i]);
  if (!options_.heads.empty() && options_.heads[i] != kNone) return handle(options_.heads[i]);
  return full(type_of(targets_[i]).shape, 1, type_of(targets_[i]).dtype, {});
}

void Generator::walk() {
  std::vector<ValueId> asked;
  std::vector<bool> seen(given_.values.size());
  for (std::size_t i = 0; i < wrt_.size(); ++i) {
    if (request(i) == GradRequest::none || seen[wrt_[i]]) continue;
    seen[wrt_[i]] = true;
    asked.push_back(wrt_[i]);
  }
  BackwardWalk walk(tape_, &forward_parts_, {});
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const bool reached = tape_.info[targets_[i]].needs_grad;
    if (!reached && !options_.allow_unreached && !asked.empty())
      throw GradientError(error_text(
          "gradient",
          fmt::format("the target {} depends on no value that the gradient is for (allow_unreached says that it adds nothing)",
                      text_of(targets_[i])),
          {}));
    if (!reached && !options_.heads_as_inputs) continue;
    const Tensor h = head(i);  // the input is made even if no node reads it
    if (reached) walk.add_target(targets_[i], h);
  }
  settle_results(asked, walk.ask_for(asked));
}

// Makes one result for each request. If the request says `add`, the gradient is added to the given value. A wrt without a
// gradient gets zeros. If an earlier request already has the same value as its result, this one gets a copy.
void Generator::settle_results(const std::vector<ValueId>& asked, std::vector<Tensor> found) {
  std::unordered_map<ValueId, Tensor> gradient_of;
  for (std::size_t i = 0; i < asked.size(); ++i) gradient_of.emplace(asked[i], std::move(found[i]));
  std::unordered_set<ValueId> taken;
  results_.assign(wrt_.size(), kNone);
  for (std::size_t i = 0; i < wrt_.size(); ++i) {
    if (request(i) == GradRequest::none) continue;
    Tensor g = gradient_of.at(wrt_[i]);
    if (request(i) == GradRequest::add) {
      const Tensor old = add_to(i) != kNone ? handle(add_to(i)) : new_input("grad_in.", wrt_[i]);
      g = g.defined() ? add(old, g) : copy(old);
    } else if (!g.defined()) {
      g = full(type_of(wrt_[i]).shape, 0, type_of(wrt_[i]).dtype, {});
    }
    if (!taken.insert(tape_.bound_value(*g.impl())).second) g = copy(g);
    results_[i] = tape_.bound_value(*g.impl());
    taken.insert(results_[i]);
  }
}

// ---- the graph ----

// Marks the recorded nodes that a gradient depends on.
void Generator::mark_live() {
  live_.assign(tape_.graph.values.size(), false);
  for (ValueId v : results_)
    if (v != kNone) live_[v] = true;
  for (NodeId n = tape_.graph.node_count() - 1; n >= recorded_from(); --n) {
    const Node& node = tape_.graph.nodes[n];
    bool live = node.op->is(kEffect);
    for (std::int32_t k = 0; k < node.n_outputs; ++k) live = live || live_[node.first_output + k];
    if (!live) continue;
    for (std::int32_t k = 0; k < node.n_outputs; ++k) live_[node.first_output + k] = true;
    for (ValueId v : tape_.graph.inputs(node)) live_[v] = true;
  }
}

void Generator::insert_inputs(Rewriter* to) const {
  Graph& g = to->graph();
  const auto n = static_cast<ValueId>(new_inputs_.size());
  const ValueId first = g.n_inputs;
  std::vector<Value> fresh;
  for (const auto& [v, name] : new_inputs_) fresh.push_back({tape_.graph.values[v].type, kNone, Role::input, name});
  g.values.insert(g.values.begin() + first, fresh.begin(), fresh.end());
  g.n_inputs += n;
  for (ValueId s = first; s < first + g.n_state; ++s) to->replace(s, s + n);
  for (ValueId i = 0; i < n; ++i) to->replace(new_inputs_[i].first, first + i);
}

std::string Generator::node_name(const Node& node) const {
  const std::string_view path = node.origin.path.view();
  const char* grad = node.origin.phase == Phase::backward ? "grad." : "";
  return path.empty() ? fmt::format("{}{}", grad, node.op->name) : fmt::format("{}{}.{}", grad, path, node.op->name);
}

// Makes constants of the tensors that a vjp made itself (such as a number). Each constant stands directly before its first
// reader.
void Generator::add_constants(Rewriter* to, NodeId n) {
  const Node& node = tape_.graph.nodes[n];
  for (ValueId v : tape_.graph.inputs(node)) {
    const std::int32_t k = tape_.info[v].outside;
    if (k == kNone || to->at(v) != kNone) continue;
    const Tensor& t = tape_.outside[k].tensor;
    if (t.abstract() || !t.dense())
      throw GradientError(
          error_text(node.op->name, "a gradient function reads a tensor of its own that no constant can hold", {}));
    auto bytes = std::make_shared<std::vector<unsigned char>>(static_cast<std::size_t>(t.bytes()));
    const detail::ResidentTensors resident(*t.impl());
    std::copy_n(static_cast<const unsigned char*>(t.impl()->resident_data()), bytes->size(), bytes->data());
    const Name name = names_.unique(node.origin.phase == Phase::backward ? "grad.constant" : "constant");
    Literal literal{t.type(), std::shared_ptr<const void>(bytes, bytes->data()),
                    t.numel() > kMaxInlineConstant ? name : Name()};
    const ConstantAttrs attrs{{to->graph().add_constant(std::move(literal))}};
    Origin origin;
    origin.phase = node.origin.phase;
    const Type type = t.type();
    const NodeId made = to->graph().add_node(ops::constant, {}, &attrs, {&type, 1}, origin);
    const ValueId constant = to->graph().nodes[made].first_output;
    to->graph().values[constant].name = name;
    to->replace(v, constant);
  }
}

// Copies a node that the walk recorded. `twin` is the node of the given graph whose vjp recorded it.
void Generator::copy_recorded(Rewriter* to, NodeId n, NodeId twin) {
  const ValueId first_output = tape_.graph.nodes[n].first_output;
  if (!live_[first_output]) return;
  add_constants(to, n);
  Graph& g = to->graph();
  const NodeId made = to->copy(n);
  Node& node = g.nodes[made];
  for (std::int32_t k = 0; k < node.n_outputs; ++k) g.values[node.first_output + k].name = names_.unique(node_name(node));
  if (twin == kNone) return;
  const Node& of = given_.nodes[twin];
  node.origin.site = of.origin.site;
  if (node.origin.phase == Phase::backward && of.n_outputs > 0)
    node.origin.twin = Name(g.value_name(to->at(of.first_output)));
  else
    node.origin.region = of.origin.region, node.origin.wish = of.origin.wish;
}

GraphGradient Generator::lay_out() {
  std::vector<const ForwardPart*> part_of(given_.nodes.size(), nullptr);
  std::vector<bool> forward(tape_.graph.nodes.size());
  for (const ForwardPart& part : forward_parts_) {
    part_of[part.twin] = &part;
    std::fill(forward.begin() + part.first, forward.begin() + part.last, true);
  }
  Rewriter to(tape_.graph);
  insert_inputs(&to);
  for (NodeId n = 0; n < recorded_from(); ++n) {
    to.copy(n);
    if (const ForwardPart* part = part_of[n])
      for (NodeId k = part->first; k < part->last; ++k) copy_recorded(&to, k, n);
  }
  for (NodeId n = recorded_from(); n < tape_.graph.node_count(); ++n)
    if (!forward[n]) copy_recorded(&to, n, tape_.notes[n].twin);
  GraphGradient result;
  for (ValueId v : results_) result.gradients.push_back(v == kNone ? kNone : to.at(v));
  for (ValueId v = 0; v < given_.value_count(); ++v) result.moved.push_back(to.at(v));
  result.graph = to.finish();
  verify(result.graph);
  return result;
}

}  // namespace

GraphGradient gradient(const Graph& graph, std::span<const ValueId> targets, std::span<const ValueId> wrt,
                       const GraphGradientOptions& options) {
  return Generator(graph, targets, wrt, options).run();
}

}  // namespace tapedeck
