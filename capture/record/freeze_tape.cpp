// The Freezer makes a graph of a finished tape in four steps: it sorts the tensors from outside, adds them as inputs, state and
// constants, copies the nodes, and adds outputs and updates. It refuses tapes that no graph can express.
//     tape      outside: x w c      nodes: matmul(x, w), add(0, c)      w written by: sub
//     graph     (%x) state(%w)      %0 = constant()  %1 = matmul(%x, %w)  %2 = add(%1, %0) ...      update %w = %3
#include <tapedeck/capture/record/freeze_tape.h>

#include <tapedeck/capture/record/call_conditions.h>
#include <tapedeck/capture/record/tape_script.h>
#include <tapedeck/engine/control/mask_counts.h>
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/site_note.h>
#include <tapedeck/engine/ir/unique_names.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/own_gradient.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace tapedeck {

using detail::TensorImpl;

namespace {

std::string site_text(Site site) { return site_note(site).str(); }

[[noreturn]] void fail_to_freeze(const std::string& message, Site site) {
  throw CaptureError(error_text("capture", message, site));
}

class Freezer {
 public:
  Freezer(Recorder& tape, Name name, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs,
          const FreezeOptions& options);
  Captured freeze();

 private:
  enum class Sort : std::uint8_t { declared, marked, gradient, state, constant };

  // ---- on the tape ----
  void note_outputs();
  void collect_uses();
  void add_use(const Tensor& t, const GradEvent* event);
  void note_hidden_history();
  void note_device();
  void check_outside() const;
  void sort_outside();
  Sort sort_of(const Outside& o) const;
  bool is_live(const Outside& o) const;

  // ---- into the graph ----
  void add_input(const std::string& wanted, const Outside& o, const std::string& how);
  void add_inputs();
  void add_state();
  void add_constants();
  void add_nodes();
  void report_node(const Node& node, const NodeInfo& note, NodeId made);
  void add_outputs();
  void add_updates();
  void keep_script();

  ValueId& mapped(ValueId v) { return map_[v]; }
  const Outside* outside_of(const Tensor& t) const;
  std::int32_t declared_index(const Tensor& t) const;
  std::string described(const Outside& o) const;
  std::string written_by(const Outside& o) const;
  std::string read_by(const Outside& o) const;
  std::string leaf_name(const Tensor& t) const;
  std::string node_name(const Node& node) const;

  Recorder& tape_;
  const std::vector<Declared>& inputs_;
  const std::vector<Declared>& outputs_;
  const FreezeOptions options_;
  std::unordered_map<const TensorImpl*, std::size_t> outside_index_;
  std::unordered_map<const TensorImpl*, std::size_t> grad_of_;  // a gradient from before the capture -> its use
  std::vector<ValueId> output_values_, current_outputs_;
  std::vector<std::pair<std::size_t, ValueId>> grad_outputs_;  // use, value
  NodeId n_nodes_ = 0;
  std::vector<ValueId> map_;  // tape value -> graph value
  std::vector<Sort> sorts_;   // by outside tensor
  UniqueNames names_;
  std::vector<NodeId> noted_counts_;  // of the tape
  Captured result_;

 public:
  std::vector<NodeId> counted;  // of the graph
};

Freezer::Freezer(Recorder& tape, Name name, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs,
                 const FreezeOptions& options)
    : tape_(tape),
      inputs_(inputs),
      outputs_(outputs),
      options_(options),
      n_nodes_(tape.graph.node_count()),
      noted_counts_(take_dynamic_counts(tape.serial)) {
  result_.graph.name = name;
  note_outputs();
  collect_uses();
  map_.assign(tape.graph.values.size(), kNone);
}

Captured Freezer::freeze() {
  check_outside();
  sort_outside();
  add_inputs();
  add_state();
  add_constants();
  add_nodes();
  add_outputs();
  add_updates();
  verify(result_.graph);
  note_hidden_history();
  note_device();
  result_.held = std::move(tape_.held);
  keep_script();
  return std::move(result_);
}

// ---- the tensors from outside ----

const Outside* Freezer::outside_of(const Tensor& t) const {
  const auto it = outside_index_.find(t.impl());
  if (it != outside_index_.end()) return &tape_.outside[it->second];
  for (std::size_t k = outside_index_.size(); k < tape_.outside.size(); ++k)
    if (tape_.outside[k].tensor.impl() == t.impl()) return &tape_.outside[k];
  return nullptr;
}

std::int32_t Freezer::declared_index(const Tensor& t) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].tensor.impl() == t.impl()) return static_cast<std::int32_t>(i);
  return kNone;
}

std::string Freezer::leaf_name(const Tensor& t) const {
  const std::int32_t input = declared_index(t);
  if (input != kNone) return inputs_[input].name;
  return t.name().empty() ? "tensor" : t.name().str();
}

std::string Freezer::described(const Outside& o) const {
  const std::int32_t input = declared_index(o.tensor);
  const std::string name = input != kNone ? inputs_[input].name : o.tensor.name().str();
  return name.empty() ? to_string(o.tensor.type()) : fmt::format("'{}' {}", name, to_string(o.tensor.type()));
}

std::string Freezer::written_by(const Outside& o) const {
  const NodeId n = tape_.graph.values[o.last].node;
  if (n == kNone) return "";
  return fmt::format("'{}' at {}", tape_.graph.nodes[n].op->name, site_text(tape_.notes[n].site));
}

std::string Freezer::read_by(const Outside& o) const {
  const bool by_node = o.before_node < tape_.graph.node_count();
  const char* op = by_node ? tape_.graph.nodes[o.before_node].op->name : "";
  return fmt::format("first read {}at {}", by_node ? fmt::format("by '{}' ", op) : "", site_text(o.read_at));
}

// Outputs are the values that the tensors hold at the end. A view whose base was written since is taken again, on the tape.
void Freezer::note_outputs() {
  for (const Outside& o : tape_.outside) outside_index_[o.tensor.impl()] = static_cast<std::size_t>(&o - tape_.outside.data());
  for (const Declared& d : outputs_) {
    const Outside* o = outside_of(d.tensor);
    current_outputs_.push_back(o ? o->last : tape_.owns(*d.tensor.impl()) ? tape_.bound_value(*d.tensor.impl()) : kNone);
  }
  for (const Declared& d : outputs_) {
    const Outside* o = outside_of(d.tensor);
    const ValueId v = o ? o->last : tape_.value_of(d.tensor.impl(), {});
    output_values_.push_back(v);
    const NodeId maker = tape_.graph.values[v].node;
    const TapeValue& info = tape_.info[v];
    const bool spent = maker != kNone && tape_.notes[maker].released;
    result_.differentiable.push_back(info.needs_grad && !info.cut && !spent);
  }
}

void Freezer::collect_uses() {
  std::unordered_map<const TensorImpl*, const GradEvent*> events;
  for (const GradEvent& e : tape_.grad_events) events[e.leaf.impl()] = &e;
  const std::size_t n = tape_.outside.size();  // the walk over gradients may add to them
  for (std::size_t k = 0; k < n; ++k) {
    const Tensor t = tape_.outside[k].tensor;
    const auto it = events.find(t.impl());
    add_use(t, it == events.end() ? nullptr : it->second);
  }
  for (const GradEvent& e : tape_.grad_events)
    if (!outside_index_.count(e.leaf.impl())) add_use(e.leaf, &e);
}

void Freezer::add_use(const Tensor& t, const GradEvent* event) {
  const Tensor before = event ? event->before : t.grad(), after = t.grad();
  TensorUse use;
  use.tensor = t;
  use.input = declared_index(t);
  use.requires_grad = t.impl()->requires_grad;
  use.request = t.grad_request();
  use.hooks = t.impl()->extra ? t.impl()->extra->hooks.size() : 0;
  const Outside* read = before.defined() ? outside_of(before) : nullptr;
  const bool matters = !(event && event->cleared) && use.request == GradRequest::add;
  if (read || (event && matters && before.defined()))
    use.grad = TensorUse::Grad::present;
  else if (!before.defined() && use.requires_grad && matters)
    use.grad = TensorUse::Grad::absent;
  if (read) grad_of_[before.impl()] = result_.uses.size();
  const bool changed = after.impl() != before.impl() || (read && read->last != read->first);
  if (options_.gradients && after.defined() && changed) {
    const Outside* o = outside_of(after);
    grad_outputs_.emplace_back(result_.uses.size(), o ? o->last : tape_.value_of(after.impl(), {}));
  }
  use.clears_grad = options_.gradients && event && !after.defined();
  result_.uses.push_back(std::move(use));
}

// Notes the causes that steer gradients on a tape and that no node of the graph shows.
void Freezer::note_hidden_history() {
  std::string& why = result_.hidden_history;
  for (std::size_t n = 0; n < tape_.graph.nodes.size() && why.empty(); ++n)
    if (tape_.graph.nodes[n].op == &ops::custom_gradient)
      why = fmt::format("a custom_gradient at {}", site_text(tape_.notes[n].site));
  if (why.empty() && !tape_.hooks.empty()) why = "a gradient hook";
  for (const TapeValue& v : tape_.info) {
    if (!why.empty()) return;
    if (v.cut)
      why = "detach_()";
    else if (v.through != kNone)
      why = "a write in place under NoGrad";
  }
}

void Freezer::note_device() {
  std::vector<Tensor> operands, all;
  for (const Declared& d : inputs_) operands.push_back(d.tensor);
  operands.insert(operands.end(), result_.state.begin(), result_.state.end());
  for (const Outside& o : tape_.outside) all.push_back(o.tensor);
  for (const Declared& d : outputs_) all.push_back(d.tensor);
  if (const EagerDevice* const device = first_device(operands)) result_.operands_device = device->name();
  if (const EagerDevice* const device = first_device(all)) result_.device = device->name();
}

// Looks at the tensors that the step took from outside. Throws if somebody wrote to one of them during the capture by a call
// that is not on the tape, or if the step writes one of them in place and also uses another one that shares bytes with it: a
// replay would read old bytes.
void Freezer::check_outside() const {
  std::unordered_map<const detail::Storage*, const Outside*> mutated;
  for (const Outside& o : tape_.outside)
    if (o.tensor.impl()->storage && o.last != o.first) mutated[o.tensor.impl()->storage] = &o;
  for (const Outside& o : tape_.outside) {
    const detail::Storage* s = o.tensor.impl()->storage;
    if (s && s->version != tape_.info[o.last].version && !mutated.count(s))
      fail_to_freeze(fmt::format("{} was written at {} from outside the capture while it was open ({})", described(o),
                                 site_text(s->written_at), read_by(o)),
                     o.read_at);
  }
  for (const Outside& o : tape_.outside) {
    const auto it = mutated.find(o.tensor.impl()->storage);
    if (it != mutated.end() && it->second != &o)
      fail_to_freeze(
          fmt::format(
              "{} shares its bytes with '{}', which the step modifies in place by {}; use one of the two inside the step",
              described(o), it->second->tensor.name().view(), written_by(*it->second)),
          o.read_at);
  }
}

Freezer::Sort Freezer::sort_of(const Outside& o) const {
  if (declared_index(o.tensor) != kNone) return Sort::declared;
  if (grad_of_.count(o.tensor.impl())) return Sort::gradient;
  const Role role = o.tensor.role();
  if (role == Role::input) return Sort::marked;
  if (o.last != o.first || role != Role::none || o.tensor.impl()->requires_grad) return Sort::state;
  return is_live(o) ? Sort::marked : Sort::constant;
}

// Whether the author may write the bytes at any time, through a pointer.
bool Freezer::is_live(const Outside& o) const {
  const detail::Storage* storage = o.tensor.impl()->storage;
  return options_.live_bytes && storage && storage->handed_out;
}

void Freezer::sort_outside() {
  for (const Outside& o : tape_.outside) {
    const Sort sort = sort_of(o);
    if (o.last != o.first && (sort == Sort::declared || sort == Sort::marked))
      fail_to_freeze(
          fmt::format("the input {} is modified in place inside the step by {}; write to a copy", described(o), written_by(o)),
          o.read_at);
    sorts_.push_back(sort);
  }
}

// ---- the graph ----

void Freezer::add_input(const std::string& wanted, const Outside& o, const std::string& how) {
  const Name name = names_.unique(wanted);
  mapped(o.first) = result_.graph.add_input(name, o.tensor.type());
  result_.inputs.push_back(o.tensor);
  result_.report.inputs.push_back({name.str(), o.tensor.type(), how});
}

void Freezer::add_inputs() {
  for (const Declared& d : inputs_) add_input(d.name, *outside_of(d.tensor), "declared");
  result_.declared_inputs = static_cast<std::int32_t>(inputs_.size());
  for (std::size_t k = 0; k < sorts_.size(); ++k) {
    const Outside& o = tape_.outside[k];
    if (sorts_[k] == Sort::marked)
      add_input(o.tensor.name().empty() ? "input" : o.tensor.name().str(), o,
                o.tensor.role() == Role::input ? "marked as an input where it was made"
                                               : "read anew in every replay, because mutable_data() handed out its bytes");
  }
  for (std::size_t k = 0; k < sorts_.size(); ++k) {
    if (sorts_[k] != Sort::gradient) continue;
    TensorUse& use = result_.uses[grad_of_.at(tape_.outside[k].tensor.impl())];
    use.grad_input = result_.graph.n_inputs;
    add_input("grad_in." + leaf_name(use.tensor), tape_.outside[k], "the gradient there was before the step");
  }
}

void Freezer::add_state() {
  for (std::size_t k = 0; k < sorts_.size(); ++k) {
    if (sorts_[k] != Sort::state) continue;
    const Outside& o = tape_.outside[k];
    const Tensor& t = o.tensor;
    const Role role = t.role() == Role::none ? Role::parameter : t.role();
    const Name name = names_.unique(t.name().empty() ? "state" : t.name().str());
    mapped(o.first) = result_.graph.add_state(name, t.type(), role);
    result_.state.push_back(t);
    result_.report.state.push_back({name.str(), t.type(), role_name(role)});
    if (o.last != o.first) {
      result_.report.mutated.push_back(name.str());
      result_.report.written_by.push_back(written_by(o));
    }
    if (role == Role::rng) result_.report.random.push_back({name.str(), t.type(), "seed and step"});
  }
}

void Freezer::add_constants() {
  for (std::size_t k = 0; k < sorts_.size(); ++k) {
    if (sorts_[k] != Sort::constant) continue;
    const Outside& o = tape_.outside[k];
    const Tensor& t = o.tensor;
    Literal literal;
    literal.type = t.type();
    if (!t.abstract()) {
      const NoGrad no_grad;
      auto bytes = std::make_shared<std::vector<unsigned char>>(static_cast<std::size_t>(t.bytes()));
      t.copy_to(bytes->data(), bytes->size(), dtype_size(t.dtype()));
      literal.data = std::shared_ptr<const void>(bytes, bytes->data());
    }
    const Name name = names_.unique(t.name().empty() ? "constant" : t.name().str());
    if (t.numel() > 16 || t.abstract()) literal.tensor = name;
    const ConstantAttrs attrs{{result_.graph.add_constant(literal)}};
    Origin origin;
    origin.site = site_note(o.read_at);
    const Type type = t.type();
    const NodeId n = result_.graph.add_node(ops::constant, {}, &attrs, {&type, 1}, origin);
    const ValueId v = result_.graph.nodes[n].first_output;
    result_.graph.values[v].name = name;
    mapped(o.first) = v;
    result_.constants.push_back(t);
    result_.report.constants.push_back({name.str(), type, fmt::format("{} bytes, {}", t.bytes(), read_by(o))});
  }
}

std::string Freezer::node_name(const Node& node) const {
  const std::string_view path = node.origin.path.view();
  const char* grad = node.origin.phase == Phase::backward ? "grad." : "";
  return path.empty() ? fmt::format("{}{}", grad, node.op->name) : fmt::format("{}{}.{}", grad, path, node.op->name);
}

void Freezer::add_nodes() {
  Graph& g = result_.graph;
  std::vector<Name> first_output(tape_.graph.nodes.size());
  for (NodeId n = 0; n < tape_.graph.node_count(); ++n) {
    const auto k = static_cast<std::size_t>(n);
    const Node& node = tape_.graph.nodes[k];
    std::vector<ValueId> inputs;
    for (ValueId v : tape_.graph.inputs(node)) inputs.push_back(mapped(v));
    Origin origin = node.origin;
    const NodeInfo& note = tape_.notes[k];
    origin.site = site_note(note.site);
    if (node.op == &ops::custom_gradient) {  // the author's function has run already, and the last operands are its results
      for (std::int32_t i = 0; i < node.n_outputs; ++i) {
        std::vector<ValueId> operands{inputs[node.n_inputs - node.n_outputs + i]};
        operands.insert(operands.end(), inputs.begin(), inputs.end() - node.n_outputs);
        const Type type = g.values[operands[0]].type;
        const NodeId made = g.add_node(ops::own_gradient, operands, nullptr, {&type, 1}, origin);
        mapped(node.first_output + i) = g.nodes[made].first_output;
        g.values.back().name = names_.unique("own_gradient");
      }
      continue;
    }
    if (note.twin != kNone) origin.twin = first_output[note.twin];
    const NodeId made = g.add_node(*node.op, inputs, tape_.graph.attributes(node), tape_.graph.output_types(node), origin, {},
                                   tape_.graph.regions_of(node));
    const ValueId first = g.nodes[made].first_output;
    if (std::binary_search(noted_counts_.begin(), noted_counts_.end(), n)) counted.push_back(made);
    for (std::int32_t i = 0; i < node.n_outputs; ++i) {
      const Name name = names_.unique(node_name(node));
      g.values[first + i].name = name;
      if (i == 0) first_output[k] = name;
      mapped(node.first_output + i) = first + i;
    }
    report_node(node, note, made);
  }
}

void Freezer::report_node(const Node& node, const NodeInfo& note, NodeId made) {
  const Graph& g = result_.graph;
  const auto outputs = g.output_values(g.nodes[made]);
  const Type type = outputs.empty() ? Type{} : outputs[0].type;
  const std::string name = outputs.empty() ? "" : outputs[0].name.str();
  if (node.op->is(kRandom) && node.origin.phase == Phase::forward) result_.report.random.push_back({name, type, node.op->name});
  if (node.op == &ops::on_host) {
    const auto& attrs = *static_cast<const HostAttrs*>(tape_.graph.attributes(node));
    const Type read = node.n_inputs > (attrs.chained ? 1 : 0) ? tape_.graph.values[tape_.graph.inputs(node)[0]].type : Type{};
    result_.report.host_calls.push_back({attrs.name.empty() ? name : attrs.name.str(), read, "at " + site_text(note.site)});
  }
}

void Freezer::add_outputs() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Declared& d = outputs_[i];
    result_.graph.outputs.push_back(mapped(output_values_[i]));
    result_.graph.output_names.push_back(Name(d.name));
    result_.report.outputs.push_back({d.name, d.tensor.type(), ""});
  }
  result_.declared_outputs = static_cast<std::int32_t>(outputs_.size());
  UniqueNames taken;
  for (const Declared& d : outputs_) taken.unique(d.name);
  for (const auto& [k, value] : grad_outputs_) {
    TensorUse& use = result_.uses[k];
    use.grad_output = static_cast<std::int32_t>(result_.graph.outputs.size());
    const Name name = taken.unique("grad." + leaf_name(use.tensor));
    result_.graph.outputs.push_back(mapped(value));
    result_.graph.output_names.push_back(name);
    result_.report.gradients.push_back(
        {name.str(), use.tensor.type(), use.grad_input == kNone ? "set" : "set, after reading what was there"});
  }
}

void Freezer::add_updates() {
  for (std::size_t k = 0; k < sorts_.size(); ++k) {
    const Outside& o = tape_.outside[k];
    if (sorts_[k] == Sort::state && o.last != o.first) result_.graph.updates.push_back({mapped(o.first), mapped(o.last)});
  }
}

void Freezer::keep_script() {
  auto script = std::make_shared<TapeScript>();
  script->n_nodes = n_nodes_;
  script->outputs = current_outputs_;
  script->source_of.assign(tape_.graph.values.size(), kNone);
  for (std::size_t k = 0; k < sorts_.size(); ++k) {
    const Outside& o = tape_.outside[k];
    TapeScript::Source source;
    source.last = o.last;
    source.name = described(o);
    if (sorts_[k] == Sort::declared) {
      source.kind = TapeScript::Kind::input;
      source.input = declared_index(o.tensor);
    } else if (sorts_[k] == Sort::constant) {
      source.kind = TapeScript::Kind::constant;
      const Node& node = result_.graph.nodes[result_.graph.values[mapped(o.first)].node];
      source.literal = *result_.graph.literal(node);
    } else {
      source.kind = sorts_[k] == Sort::gradient ? TapeScript::Kind::gradient : TapeScript::Kind::tensor;
      source.tensor = sorts_[k] == Sort::gradient ? result_.uses[grad_of_.at(o.tensor.impl())].tensor : o.tensor;
    }
    script->source_of[o.first] = static_cast<std::int32_t>(script->sources.size());
    script->sources.push_back(std::move(source));
  }
  for (std::size_t n = 0; n < tape_.graph.nodes.size(); ++n) tape_.graph.nodes[n].origin.site = site_note(tape_.notes[n].site);
  script->graph = std::move(tape_.graph);
  tape_.graph = Graph();
  result_.script = std::move(script);
}

}  // namespace

Captured freeze(Recorder& tape, Name name, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs,
                const FreezeOptions& options, std::vector<NodeId>* counted) {
  Freezer freezer(tape, name, inputs, outputs, options);
  Captured captured = freezer.freeze();
  *counted = std::move(freezer.counted);
  return captured;
}

}  // namespace tapedeck
