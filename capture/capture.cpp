// Capture turns the tape of a stretch of running code into a graph. What the code read from outside is sorted into inputs (declared,
// or marked as such, like learning rates), state (mutated inside, or marked as a parameter or moment), and constants.
#include <tapedeck/capture/capture.h>

#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/recorder.h>
#include <tapedeck/engine/settings.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <unordered_map>
#include <unordered_set>

namespace tapedeck {

using detail::TensorImpl;

namespace {

struct Declared {
  std::string name;
  Tensor tensor;
};

std::string site_text(Site site) {
  if (site.line == 0) return "";
  const std::string_view file = site.file;
  const std::size_t slash = file.rfind('/');
  return fmt::format("{}:{}", slash == file.npos ? file : file.substr(slash + 1), site.line);
}

[[noreturn]] void fail(const std::string& message, Site site) { throw CaptureError(error_text("capture", message, site)); }

// Unique names: a taken one gets ".1", ".2", ...
class Names {
 public:
  Name unique(const std::string& wanted) {
    if (taken_.insert(wanted).second) return Name(wanted);
    for (int& k = next_[wanted];;) {
      const std::string name = fmt::format("{}.{}", wanted, ++k);
      if (taken_.insert(name).second) return Name(name);
    }
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
};

// Builds the graph from a finished tape.
class Freezer {
 public:
  Freezer(Recorder& tape, Name name, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs)
      : tape_(tape), inputs_(inputs), outputs_(outputs) {
    result_.graph.name = name;
    // Outputs are what the tensors hold now: views of bases written since are taken again, on the tape.
    for (const Declared& d : outputs_) {
      const Outside* o = outside_of(d.tensor);
      output_values_.push_back(o ? o->last : tape_.value_of(d.tensor.impl(), {}));
    }
    map_.assign(tape.graph.values.size(), kNone);
  }

  Captured freeze() {
    check_outside();
    sort_outside();
    add_inputs();
    add_state();
    add_constants();
    add_nodes();
    add_outputs();
    add_updates();
    verify(result_.graph);
    return std::move(result_);
  }

 private:
  void check_outside() const;
  void sort_outside();
  void add_inputs();
  void add_state();
  void add_constants();
  void add_nodes();
  void add_outputs();
  void add_updates();
  std::string node_name(const Node& node) const;
  const Outside* outside_of(const Tensor& t) const;

  Recorder& tape_;
  const std::vector<Declared>& inputs_;
  const std::vector<Declared>& outputs_;
  std::vector<ValueId> output_values_;
  std::vector<ValueId> map_;                    // tape value -> graph value
  std::vector<const Outside*> marked_, state_, constants_;
  Names names_;
  Captured result_;
};

const Outside* Freezer::outside_of(const Tensor& t) const {
  for (const Outside& o : tape_.outside)
    if (o.tensor.impl() == t.impl()) return &o;
  return nullptr;
}

// Writes that the tape did not see, and tensors that share bytes with mutated ones, would replay wrongly.
void Freezer::check_outside() const {
  std::unordered_map<const detail::Storage*, const Outside*> mutated;
  for (const Outside& o : tape_.outside) {
    const detail::Storage* s = o.tensor.impl()->storage;
    if (!s) continue;
    if (o.last != o.first) mutated[s] = &o;
    if (s->version != tape_.info[static_cast<std::size_t>(o.last)].version && !mutated.count(s)) {
      const bool by_sibling = std::any_of(tape_.outside.begin(), tape_.outside.end(), [&](const Outside& p) {
        return &p != &o && p.tensor.impl()->storage == s && p.last != p.first;
      });
      if (!by_sibling) fail(fmt::format("{} was written from outside the capture while it was open", to_string(o.tensor.type())), o.read_at);
    }
  }
  for (const Outside& o : tape_.outside) {
    auto it = mutated.find(o.tensor.impl()->storage);
    if (it != mutated.end() && it->second != &o)
      fail(fmt::format("{} shares its bytes with '{}', which the step modifies in place", to_string(o.tensor.type()), it->second->tensor.name().view()), o.read_at);
  }
}

void Freezer::sort_outside() {
  for (const Outside& o : tape_.outside) {
    const bool declared = std::any_of(inputs_.begin(), inputs_.end(), [&](const Declared& d) { return d.tensor.impl() == o.tensor.impl(); });
    const Role role = o.tensor.role();
    if (o.last != o.first && (declared || role == Role::input))
      fail(fmt::format("the input {} is modified in place inside the step", to_string(o.tensor.type())), o.read_at);
    if (declared) continue;
    if (role == Role::input) marked_.push_back(&o);
    else if (o.last != o.first || role != Role::none || o.tensor.impl()->requires_grad) state_.push_back(&o);
    else constants_.push_back(&o);
  }
}

void Freezer::add_inputs() {
  auto add = [&](const std::string& wanted, const Outside& o, const char* how) {
    const Name name = names_.unique(wanted);
    map_[static_cast<std::size_t>(o.first)] = result_.graph.add_input(name, o.tensor.type());
    result_.inputs.push_back(o.tensor);
    result_.report.inputs.push_back({name.str(), o.tensor.type(), how});
  };
  for (const Declared& d : inputs_) add(d.name, *outside_of(d.tensor), "declared");
  for (const Outside* o : marked_) add(o->tensor.name().empty() ? "input" : o->tensor.name().str(), *o, "marked as an input where it was made");
}

void Freezer::add_state() {
  for (const Outside* o : state_) {
    const Tensor& t = o->tensor;
    const Role role = t.role() == Role::none ? Role::parameter : t.role();
    const Name name = names_.unique(t.name().empty() ? "state" : t.name().str());
    map_[static_cast<std::size_t>(o->first)] = result_.graph.add_state(name, t.type(), role);
    result_.state.push_back(t);
    result_.report.state.push_back({name.str(), t.type(), role_name(role)});
    if (o->last != o->first) result_.report.mutated.push_back(name.str());
    if (role == Role::rng) result_.report.random.push_back({name.str(), t.type(), "seed and step"});
  }
}

void Freezer::add_constants() {
  for (const Outside* o : constants_) {
    const Tensor& t = o->tensor;
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
    origin.site = Name(site_text(o->read_at));
    const Type type = t.type();
    const NodeId n = result_.graph.add_node(ops::constant, {}, &attrs, {&type, 1}, origin);
    const ValueId v = result_.graph.nodes[static_cast<std::size_t>(n)].first_output;
    result_.graph.values[static_cast<std::size_t>(v)].name = name;
    map_[static_cast<std::size_t>(o->first)] = v;
    result_.report.constants.push_back({name.str(), type, fmt::format("{} bytes, first read at {}", t.bytes(), site_text(o->read_at))});
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
    for (ValueId v : tape_.graph.inputs(node)) inputs.push_back(map_[static_cast<std::size_t>(v)]);
    if (node.op == &ops::custom_gradient) {  // the author's function has run already: its results are the last operands
      for (std::int32_t i = 0; i < node.n_outputs; ++i)
        map_[static_cast<std::size_t>(node.first_output + i)] = inputs[static_cast<std::size_t>(node.n_inputs - node.n_outputs + i)];
      continue;
    }
    Origin origin = node.origin;
    const NodeInfo& note = tape_.notes[k];
    origin.site = Name(site_text(note.site));
    if (note.twin != kNone) origin.twin = first_output[static_cast<std::size_t>(note.twin)];
    const NodeId made = g.add_node(*node.op, inputs, tape_.graph.attributes(node), tape_.graph.output_types(node), origin, {},
                                  tape_.graph.regions_of(node));
    const ValueId first = g.nodes[static_cast<std::size_t>(made)].first_output;
    for (std::int32_t i = 0; i < node.n_outputs; ++i) {
      const Name name = names_.unique(node_name(node));
      g.values[static_cast<std::size_t>(first + i)].name = name;
      if (i == 0) first_output[k] = name;
      map_[static_cast<std::size_t>(node.first_output + i)] = first + i;
    }
    if (node.op->is(kRandom) && node.origin.phase == Phase::forward)
      result_.report.random.push_back({first_output[k].str(), node.n_outputs ? g.values[static_cast<std::size_t>(first)].type : Type{}, node.op->name});
  }
}

void Freezer::add_outputs() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Declared& d = outputs_[i];
    result_.graph.outputs.push_back(map_[static_cast<std::size_t>(output_values_[i])]);
    result_.graph.output_names.push_back(Name(d.name));
    result_.report.outputs.push_back({d.name, d.tensor.type(), ""});
  }
}

void Freezer::add_updates() {
  for (const Outside* o : state_)
    if (o->last != o->first) result_.graph.updates.push_back({map_[static_cast<std::size_t>(o->first)], map_[static_cast<std::size_t>(o->last)]});
}

}  // namespace

namespace {

// What TAPEDECK_DEBUG=2 and TAPEDECK_DUMP ask for.
void show(const Captured& captured) {
  const Settings s = settings_from_environment();
  if (s.debug >= 2) fmt::print(stderr, "capture {}: {} nodes\n{}", captured.graph.name.view(), captured.graph.node_count(), captured.report.to_string());
  if (s.dump.empty()) return;
  const std::string path = fmt::format("{}/{}.graph", s.dump, captured.graph.name.view());
  std::ofstream file(path);
  file << print(captured.graph);
  if (!file.flush()) fmt::print(stderr, "warning: cannot write {}\n", path);
}

}  // namespace

// ---- the scope ----

struct Capture::Impl {
  std::string name;
  Site site;
  Recorder tape{true};
  Recorder* before = nullptr;
  std::unordered_map<const void*, std::int32_t> draws_before;
  std::vector<Declared> inputs, outputs;
  bool open = true;

  void close() {
    if (!std::exchange(open, false)) return;
    ThreadState& state = thread_state();
    state.tape = before;
    // Draws made before count on, unless a new step began inside.
    if (!stepped()) state.draws = std::move(draws_before);
  }

  bool stepped() const {
    return std::any_of(tape.outside.begin(), tape.outside.end(), [](const Outside& o) { return o.tensor.role() == Role::rng && o.last != o.first; });
  }
};

Capture::Capture(std::string name, Site site) : impl_(std::make_unique<Impl>()) {
  ThreadState& state = thread_state();
  if (state.tape->capturing) fail("a capture is already open on this thread", site);
  if (state.region != kNone) fail("cannot open inside a checkpoint region", site);
  impl_->name = std::move(name);
  impl_->site = site;
  impl_->before = std::exchange(state.tape, &impl_->tape);
  // Draws count from zero, as they do in every later step.
  impl_->draws_before = std::exchange(state.draws, {});
}

Capture::~Capture() {
  if (impl_) impl_->close();
}

Tensor Capture::input(const std::string& name, const Tensor& value) {
  if (!impl_->open) fail("is finished", impl_->site);
  if (!value.defined()) fail(fmt::format("input '{}' is undefined", name), impl_->site);
  for (const Declared& d : impl_->inputs)
    if (d.name == name) fail(fmt::format("input '{}' is declared twice", name), impl_->site);
  Tensor t = value;
  const bool again = std::any_of(impl_->inputs.begin(), impl_->inputs.end(), [&](const Declared& d) { return d.tensor.impl() == t.impl(); });
  if (again) t = Tensor(detail::new_view(*value.impl(), value.shape(), 0, value.strides()));
  if (impl_->tape.owns(*t.impl())) fail(fmt::format("input '{}' was computed inside the capture", name), impl_->site);
  impl_->tape.declare(t.impl(), impl_->site);
  impl_->inputs.push_back({name, t});
  return t;
}

void Capture::output(const std::string& name, const Tensor& value) {
  if (!impl_->open) fail("is finished", impl_->site);
  if (!value.defined()) fail(fmt::format("output '{}' is undefined", name), impl_->site);
  for (const Declared& d : impl_->outputs)
    if (d.name == name) fail(fmt::format("output '{}' is declared twice", name), impl_->site);
  impl_->tape.value_of(value.impl(), impl_->site);
  impl_->outputs.push_back({name, value});
}

Captured Capture::finish() {
  if (!impl_->open) fail("is finished", impl_->site);
  struct Close {
    Impl& impl;
    ~Close() { impl.close(); }
  } close{*impl_};
  // The tape is set aside first, so that reading constants is not refused as a host read.
  thread_state().tape = impl_->before;
  Captured captured = Freezer(impl_->tape, Name(impl_->name), impl_->inputs, impl_->outputs).freeze();
  show(captured);
  return captured;
}

std::string CaptureReport::to_string() const {
  std::string text;
  auto list = [&](const char* title, const std::vector<Item>& items) {
    if (items.empty()) return;
    text += fmt::format("{}:\n", title);
    for (const Item& i : items) text += fmt::format("  {}: {}{}{}\n", i.name, tapedeck::to_string(i.type), i.detail.empty() ? "" : "  ", i.detail);
  };
  list("inputs", inputs);
  list("state", state);
  if (!mutated.empty()) text += fmt::format("updated: {}\n", fmt::join(mutated, ", "));
  list("random", random);
  list("constants baked in", constants);
  list("outputs", outputs);
  return text;
}

}  // namespace tapedeck
