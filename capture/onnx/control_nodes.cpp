// If, Loop and Scan. A branch whose condition is known takes the place of the node. Other nodes become those of Tapedeck, whose
// regions are recorded by running the inner graph on tensors without data.
#include <tapedeck/capture/onnx/interpreter.h>

#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tapedeck::onnx {

namespace {

const Attribute* graph_attribute(const Node& node, const std::string& name) {
  const auto it = node.attributes.find(name);
  return it != node.attributes.end() && it->second.kind == AttributeKind::graph ? &it->second : nullptr;
}

constexpr std::int64_t kMostTrips = std::int64_t{1} << 40;

Operand true_condition() {
  static constexpr bool kYes = true;
  return {known_tensor({DType::boolean, {}}, &kYes), &kYes};
}

// Counters are small. Nodes that read larger values do not run again and again.
bool reads_much(const Scope& scope) {
  constexpr std::int64_t kMostBytes = 1 << 16;
  for (const Node& node : scope.graph->nodes)
    for (const std::string& input : node.inputs) {
      const Operand* o = input.empty() ? nullptr : scope.find(input);
      if (o != nullptr && o->is_known() && o->tensor.bytes() > kMostBytes) return true;
    }
  return false;
}

bool is_control(const Node& node) { return node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan"); }

// The nodes of the body of a Loop on which its condition depends, through any number of trips.
Graph nodes_of_condition(const Graph& body) {
  std::unordered_map<std::string, const Node*> makers;
  std::unordered_map<std::string, std::string> next;  // of a carried value: the result that takes its place
  for (const Node& node : body.nodes)
    for (const std::string& output : node.outputs) makers[output] = &node;
  for (std::size_t i = 2; i < body.inputs.size() && i - 1 < body.outputs.size(); ++i)
    next[body.inputs[i].name] = body.outputs[i - 1].name;
  std::unordered_set<std::string> seen = {body.outputs[0].name};
  std::vector<std::string> waiting = {body.outputs[0].name};
  std::unordered_set<const Node*> needed;
  const auto look_at = [&](const std::string& name) {
    if (seen.insert(name).second) waiting.push_back(name);
  };
  while (!waiting.empty()) {
    const std::string name = waiting.back();
    waiting.pop_back();
    if (const auto it = next.find(name); it != next.end()) look_at(it->second);
    const auto maker = makers.find(name);
    if (maker == makers.end() || !needed.insert(maker->second).second) continue;
    for (const std::string& input : maker->second->inputs) look_at(input);
  }
  Graph part;
  for (const Node& node : body.nodes)
    if (needed.count(&node) > 0) part.nodes.push_back(node);
  return part;
}

}  // namespace

bool Interpreter::run_control(Scope& scope, const Node& node, Site site) {
  if (!node.domain.empty()) return false;
  if (node.op == "If") return run_if(scope, node, site), true;
  if (node.op == "Loop") return run_loop(scope, node, site), true;
  if (node.op == "Scan") return run_scan(scope, node, site), true;
  return false;
}

// The first pass makes the scope and finds what is known in it; the second one has it again without the values of the first.
Scope& Interpreter::inner_scope(Scope& scope, const Node& node, const std::string& attribute) {
  const Attribute* a = graph_attribute(node, attribute);
  if (a == nullptr) fail(node, fmt::format("the graph '{}' is missing", attribute));
  std::unique_ptr<Scope>& inner = scope.inner[{&node, attribute}];
  if (!inner) inner = std::make_unique<Scope>();
  inner->graph = a->graph.get();
  inner->outer = &scope;
  inner->values.clear();
  for (const TensorData& data : inner->graph->initializers) {
    Operand& o = inner->known[data.name];
    if (!o.is_known()) o = known_operand(tensor_of(data, state_.path));
    inner->values[data.name] = o;
  }
  return *inner;
}

// The results of the inner graph in the order of its outputs.
Tensors Interpreter::run_inner(Scope& inner, const std::vector<Operand>& inputs) {
  const Graph& graph = *inner.graph;
  if (inputs.size() != graph.inputs.size())
    throw ParseError(fmt::format("{}: the graph '{}' takes {} inputs and gets {}", state_.path, graph.name, graph.inputs.size(),
                                 inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) inner.values[graph.inputs[i].name] = inputs[i];
  run(inner, pass_);
  Tensors results;
  for (const ValueInfo& output : graph.outputs) results.push_back(value(inner, output.name).tensor);
  return results;
}

void Interpreter::run_if(Scope& scope, const Node& node, Site site) {
  const Operand* condition = operand(scope, node, 0);
  if (condition == nullptr) fail(node, "the condition is missing");
  if (condition->is_known()) {
    if (condition->tensor.numel() != 1) fail(node, "the condition must have one element");
    Scope& branch = inner_scope(scope, node, integers_of(*condition)[0] != 0 ? "then_branch" : "else_branch");
    const Tensors results = run_inner(branch, {});
    for (std::size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const Operand& o = value(branch, branch.graph->outputs[i].name);
      if (pass_ == Pass::find_known && o.is_known()) scope.known[node.outputs[i]] = o;
      scope.values[node.outputs[i]] = o;
    }
    return;
  }
  Scope& yes = inner_scope(scope, node, "then_branch");
  Scope& no = inner_scope(scope, node, "else_branch");
  if (pass_ == Pass::find_known) {
    const AbstractMode types;
    Tensors results;
    for (const Tensor& t : run_inner(yes, {})) results.push_back(abstract_tensor(t.type()));
    run_inner(no, {});
    return give(scope, node, results);
  }
  const auto at = [site](const Tensor& t) { return Arg(t, site.file, site.line); };
  const Tensor flag = condition->tensor.rank() == 0 ? condition->tensor : reshape(at(condition->tensor), Shape{});
  const auto branch = [this, at](Scope& inner) {
    return [this, at, &inner](const Tensors&) {
      Tensors results;
      for (const Tensor& t : run_inner(inner, {})) results.push_back(alias(at(t)));
      return results;
    };
  };
  give(scope, node, cond(flag, branch(yes), branch(no), {}, site));
}

// The parts of a Loop: body(i, condition, carried...) -> condition, carried..., stacked...
struct Interpreter::LoopNode {
  const Operand* trips = nullptr;  // null: no bound
  std::int64_t most = -1;          // the number of trips where it is known
  Operand start;                   // the first condition
  Tensors carried;
};

std::int64_t Interpreter::only_integer(const Node& node, const Operand& known) const {
  if (known.tensor.numel() != 1) fail(node, "the number of trips and the condition must have one element");
  return integers_of(known)[0];
}

Interpreter::LoopNode Interpreter::loop_of(const Scope& scope, const Node& node) const {
  LoopNode loop;
  loop.trips = operand(scope, node, 0);
  if (loop.trips != nullptr && loop.trips->is_known()) {
    loop.most = only_integer(node, *loop.trips);
    loop.most = std::max<std::int64_t>(loop.most, 0);
    if (loop.most > kMostTrips) {  // how exporters write a loop without a bound
      loop.trips = nullptr;
      loop.most = -1;
    }
  }
  const Operand* condition = operand(scope, node, 1);
  loop.start = condition == nullptr ? true_condition() : *condition;
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    const Operand* o = operand(scope, node, i);
    if (o == nullptr) fail(node, "a carried value is missing");
    loop.carried.push_back(o->tensor);
  }
  return loop;
}

// Finds what is known in the body. It only runs while its condition is true; if that gives a true one, the loop ends by its
// number of trips alone.
Tensors Interpreter::find_known_in_body(Scope& scope, const Node& node, const LoopNode& loop) {
  std::vector<Operand> inputs = {{abstract_tensor({DType::i64, {}})}, true_condition()};
  for (const Tensor& t : loop.carried) inputs.push_back({abstract_tensor(t.type())});
  Scope& body = inner_scope(scope, node, "body");
  const Tensors made = run_inner(body, inputs);
  const Operand& next = value(body, body.graph->outputs[0].name);
  const bool begins_true = loop.start.is_known() && only_integer(node, loop.start) != 0;
  if (begins_true && next.is_known() && only_integer(node, next) != 0) always_true_.insert(&node);
  return made;
}

// The condition of a loop of TensorFlow compares counters with constants. Its nodes alone run here, trip by trip, until it is
// false. -1: it depends on other values, or there are too many trips.
std::int64_t Interpreter::count_trips(Scope& scope, const Node& node, const LoopNode& loop) {
  constexpr std::int64_t kMostRuns = 1 << 16;  // of nodes, in all loops of the model
  if (!loop.start.is_known()) return -1;
  if (only_integer(node, loop.start) == 0) return 0;
  Scope& body = inner_scope(scope, node, "body");
  const std::vector<ValueInfo>&inputs = body.graph->inputs, &outputs = body.graph->outputs;
  const Graph part = nodes_of_condition(*body.graph);
  if (std::any_of(part.nodes.begin(), part.nodes.end(), is_control)) return -1;
  Scope trip;
  trip.graph = &part;
  trip.outer = &body;
  std::vector<Operand> now;
  for (std::size_t i = 2; i < node.inputs.size(); ++i) now.push_back(*operand(scope, node, i));
  for (std::int64_t t = 0;; ++t) {
    if (t == loop.most) return t;
    state_.condition_runs += static_cast<std::int64_t>(part.nodes.size()) + 1;
    if (state_.condition_runs > kMostRuns) return -1;
    trip.known.clear();
    trip.values.clear();
    trip.values[inputs[0].name] = known_operand(known_tensor({DType::i64, {}}, &t));
    trip.values[inputs[1].name] = true_condition();
    for (std::size_t i = 0; i < now.size(); ++i) trip.values[inputs[i + 2].name] = now[i];
    run(trip, pass_);
    const Operand& more = value(trip, outputs[0].name);
    if (!more.is_known() || reads_much(trip)) return -1;
    if (only_integer(node, more) == 0) return t + 1;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const Operand* made = trip.find(outputs[i + 1].name);
      now[i] = made != nullptr ? *made : Operand{abstract_tensor(now[i].tensor.type())};
    }
  }
  return -1;
}

Tensor Interpreter::stacked_type(const Node& node, std::int64_t trips, const Tensor& slice) const {
  Integers sizes = {trips};
  sizes.insert(sizes.end(), slice.shape().begin(), slice.shape().end());
  if (sizes.size() > static_cast<std::size_t>(kMaxRank) || checked_bytes(slice.dtype(), sizes) < 0)
    fail(node, "the stacked results are too large");
  return abstract_tensor({slice.dtype(), Shape(std::span<const std::int64_t>(sizes))});
}

// With a known number of trips a loop is a scan, whose gradient keeps its values.
void Interpreter::run_loop(Scope& scope, const Node& node, Site site) {
  LoopNode loop = loop_of(scope, node);
  const std::size_t n = loop.carried.size();
  if (inner_scope(scope, node, "body").graph->outputs.size() < n + 1) fail(node, "the body has too few results");
  if (pass_ == Pass::find_known) {
    const AbstractMode types;
    const Tensors made = find_known_in_body(scope, node, loop);
    const std::int64_t trips = always_true_.count(&node) > 0 ? loop.most : count_trips(scope, node, loop);
    if (trips >= 0) known_trips_[&node] = trips;
    Tensors results;
    for (std::size_t i = 1; i < made.size(); ++i) {
      if (i > n && trips < 0)
        fail(node, "the number of trips makes the size of a result, and it is known only when the model runs");
      results.push_back(i <= n ? abstract_tensor(made[i].type()) : stacked_type(node, trips, made[i]));
    }
    return give(scope, node, results);
  }
  const auto trips = known_trips_.find(&node);
  if (trips != known_trips_.end()) loop.most = trips->second;
  const bool goes_on = trips != known_trips_.end() || always_true_.count(&node) > 0;
  const auto at = [&](const Tensor& t) { return Arg(t, site.file, site.line); };
  const auto as_scalar = [&](const Tensor& t) { return t.rank() == 0 ? alias(at(t)) : reshape(at(t), Shape{}); };
  const std::int64_t zero = 0;
  // The carried values: the number of the trip, the condition unless it is always true, and those of the node.
  Tensors carried = {known_tensor({DType::i64, {}}, &zero)};
  if (!goes_on) carried.push_back(as_scalar(loop.start.tensor));
  const std::size_t own = carried.size();
  carried.insert(carried.end(), loop.carried.begin(), loop.carried.end());
  const auto trip = [&](const Tensors& now) {
    std::vector<Operand> inputs = {{now[0]}, true_condition()};
    for (std::size_t i = own; i < own + n; ++i) inputs.push_back({now[i]});
    const Tensors made = run_inner(inner_scope(scope, node, "body"), inputs);
    Tensors next = {add(at(now[0]), std::int64_t{1})};
    if (!goes_on) next.push_back(as_scalar(made[0]));
    for (std::size_t i = 1; i < made.size(); ++i) next.push_back(alias(at(made[i])));
    return next;
  };
  const auto condition = [&](const Tensors& now) {
    const Tensor more = goes_on ? Tensor() : alias(at(now[1]));
    if (loop.trips == nullptr) return more;
    const Tensor below = loop.most >= 0 ? less(at(now[0]), loop.most) : less(at(now[0]), as_scalar(loop.trips->tensor));
    return more.defined() ? logical_and(at(more), below) : below;
  };
  LoopOptions options;
  options.max_trips = loop.most;
  if (goes_on && loop.trips == nullptr && loop.most < 0) fail(node, "it never ends");
  const LoopResult result = goes_on && loop.most >= 0 ? tapedeck::scan(trip, carried, {}, {}, options, site)
                                                      : while_loop(condition, trip, carried, {}, options, site);
  Tensors results(result.carried.begin() + static_cast<std::ptrdiff_t>(own), result.carried.end());
  results.insert(results.end(), result.stacked.begin(), result.stacked.end());
  give(scope, node, results);
}

// The parts of a Scan: body(state..., slices...) -> state..., slices of the results.
struct Interpreter::ScanNode {
  std::size_t states = 0, stacked = 0;
  Integers in_axes, in_reverse, out_axes, out_reverse;
  bool reverse = false;  // all operands and results are: the scan itself goes back, and none of them is
  Tensors carried, xs;   // the slices of xs lie along dimension 0, in the order in which they are read
};

Interpreter::ScanNode Interpreter::scan_of(const Node& node, const Graph& body) const {
  ScanNode s;
  const auto number = node.attributes.find("num_scan_inputs");
  const std::int64_t slices = number == node.attributes.end() ? -1 : number->second.integer;
  if (slices < 1 || slices > static_cast<std::int64_t>(node.inputs.size())) fail(node, "'num_scan_inputs' does not fit");
  s.states = node.inputs.size() - static_cast<std::size_t>(slices);
  if (body.outputs.size() < s.states) fail(node, "the body has too few results");
  s.stacked = body.outputs.size() - s.states;
  const auto list = [&](const char* name, std::size_t size) {
    const auto it = node.attributes.find(name);
    Integers values = it == node.attributes.end() ? Integers() : it->second.integers;
    if (!values.empty() && values.size() != size) fail(node, fmt::format("'{}' does not fit", name));
    values.resize(size);
    return values;
  };
  s.in_axes = list("scan_input_axes", static_cast<std::size_t>(slices));
  s.in_reverse = list("scan_input_directions", static_cast<std::size_t>(slices));
  s.out_axes = list("scan_output_axes", s.stacked);
  s.out_reverse = list("scan_output_directions", s.stacked);
  const auto goes_back = [](std::int64_t direction) { return direction != 0; };
  s.reverse = std::all_of(s.in_reverse.begin(), s.in_reverse.end(), goes_back) &&
              std::all_of(s.out_reverse.begin(), s.out_reverse.end(), goes_back);
  if (s.reverse) {
    s.in_reverse.assign(s.in_reverse.size(), 0);
    s.out_reverse.assign(s.out_reverse.size(), 0);
  }
  return s;
}

std::int64_t Interpreter::checked_axis(const Node& node, std::int64_t given, std::int64_t rank) const {
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) fail(node, fmt::format("there is no axis {} in a tensor of {} dimensions", given, rank));
  return axis;
}

void Interpreter::take_scan_operands(const Scope& scope, const Node& node, Site site, ScanNode* s) const {
  const auto at = [&](const Tensor& t) { return Arg(t, site.file, site.line); };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Operand* o = operand(scope, node, i);
    if (o == nullptr) fail(node, "an operand is missing");
    if (i < s->states) {
      s->carried.push_back(o->tensor);
      continue;
    }
    const std::int64_t axis = checked_axis(node, s->in_axes[i - s->states], o->tensor.rank());
    Tensor x = axis == 0 ? o->tensor : movedim(at(o->tensor), axis, 0);
    s->xs.push_back(s->in_reverse[i - s->states] != 0 ? flip(at(x), {0}) : x);
    if (s->xs.back().size(0) != s->xs.front().size(0)) fail(node, "the scanned operands have different lengths");
  }
}

void Interpreter::run_scan(Scope& scope, const Node& node, Site site) {
  if (opset_of(node) < 9) fail(node, "this op is supported from opset 9 on");
  ScanNode s = scan_of(node, *inner_scope(scope, node, "body").graph);
  const auto at = [&](const Tensor& t) { return Arg(t, site.file, site.line); };
  const auto finished = [&](Tensors made) {
    for (std::size_t i = 0; i < s.stacked; ++i) {
      Tensor& t = made[s.states + i];
      const std::int64_t axis = checked_axis(node, s.out_axes[i], t.rank());
      if (s.out_reverse[i] != 0) t = flip(at(t), {0});
      if (axis != 0) t = movedim(at(t), 0, axis);
    }
    return made;
  };
  if (pass_ == Pass::find_known) {
    const AbstractMode types;
    take_scan_operands(scope, node, site, &s);
    std::vector<Operand> inputs;
    for (const Tensor& t : s.carried) inputs.push_back({abstract_tensor(t.type())});
    for (const Tensor& x : s.xs)
      inputs.push_back(
          {abstract_tensor({x.dtype(), Shape(std::span<const std::int64_t>(x.shape().begin() + 1, x.shape().end()))})});
    Tensors made = run_inner(inner_scope(scope, node, "body"), inputs);
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = i < s.states ? abstract_tensor(made[i].type()) : stacked_type(node, s.xs[0].size(0), made[i]);
    return give(scope, node, finished(made));
  }
  take_scan_operands(scope, node, site, &s);
  LoopOptions options;
  options.reverse = s.reverse;
  const auto pass = [&](const Tensors& now) {
    std::vector<Operand> inputs;
    for (const Tensor& t : now) inputs.push_back({t});
    Tensors made = run_inner(inner_scope(scope, node, "body"), inputs);
    for (Tensor& t : made) t = alias(at(t));
    return made;
  };
  const LoopResult result = tapedeck::scan(pass, s.carried, s.xs, {}, options, site);
  Tensors made = result.carried;
  made.insert(made.end(), result.stacked.begin(), result.stacked.end());
  give(scope, node, finished(made));
}

}  // namespace tapedeck::onnx
