// If, Loop and Scan. A branch whose condition is known takes the place of the node. Other nodes become those of Tapedeck, whose
// regions are recorded by running the inner graph on tensors without data.
#include <tapedeck/capture/onnx/interpreter.h>

#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck::onnx {

namespace {

const Attribute* graph_attribute(const Node& node, const std::string& name) {
  const auto it = node.attributes.find(name);
  return it != node.attributes.end() && it->second.kind == AttributeKind::graph ? &it->second : nullptr;
}

constexpr std::int64_t kMostTrips = std::int64_t{1} << 40;

std::vector<Operand> unknown(const Tensors& tensors) {
  std::vector<Operand> operands;
  for (const Tensor& t : tensors) operands.push_back({t});
  return operands;
}

Tensor typed(const Type& type) { return abstract_tensor(type); }

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
    for (const Tensor& t : run_inner(yes, {})) results.push_back(typed(t.type()));
    run_inner(no, {});
    return give(scope, node, results);
  }
  const Tensor flag = condition->tensor.rank() == 0 ? condition->tensor : reshape(condition->tensor, Shape{});
  const auto branch = [this](Scope& inner) {
    return [this, &inner](const Tensors&) {
      Tensors results;
      for (const Tensor& t : run_inner(inner, {})) results.push_back(alias(t));
      return results;
    };
  };
  give(scope, node, cond(flag, branch(yes), branch(no), {}, site));
}

// body(i, condition, carried...) -> condition, carried..., stacked... With a known number of trips, and a body whose condition
// is always true, the loop is a scan, which has a gradient that keeps its values.
void Interpreter::run_loop(Scope& scope, const Node& node, Site site) {
  Scope& body = inner_scope(scope, node, "body");
  const Operand* trips = operand(scope, node, 0);
  const Operand* condition = operand(scope, node, 1);
  const auto only = [&](const Operand& o) {
    if (o.tensor.numel() != 1) fail(node, "the number of trips and the condition must have one element");
    return integers_of(o)[0];
  };
  const bool counted = trips != nullptr && trips->is_known();
  const std::int64_t most = counted ? only(*trips) : -1;
  if (counted && (most < 0 || most > kMostTrips)) fail(node, fmt::format("{} trips are not possible", most));
  Tensors carried;
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    const Operand* o = operand(scope, node, i);
    if (o == nullptr) fail(node, "a carried value is missing");
    carried.push_back(o->tensor);
  }
  const std::size_t n = carried.size();
  const std::int64_t zero = 0;
  const bool yes = true;
  const Tensor first = known_tensor({DType::i64, {}}, &zero);
  const Tensor start = condition == nullptr            ? known_tensor({DType::boolean, {}}, &yes)
                       : condition->tensor.rank() == 0 ? condition->tensor
                                                       : reshape(condition->tensor, Shape{});
  if (body.graph->outputs.size() < n + 1) fail(node, "the body has too few results");

  if (pass_ == Pass::find_known) {
    const AbstractMode types;
    Tensors inputs = {typed(first.type()), typed(start.type())};
    for (const Tensor& t : carried) inputs.push_back(typed(t.type()));
    const Tensors made = run_inner(body, unknown(inputs));
    Tensors results;
    for (std::size_t i = 1; i <= n; ++i) results.push_back(typed(made[i].type()));
    for (std::size_t i = n + 1; i < made.size(); ++i) {
      if (most < 0) fail(node, "the number of trips makes the size of a result, and it is known only when the model runs");
      Integers sizes = {most};
      sizes.insert(sizes.end(), made[i].shape().begin(), made[i].shape().end());
      if (sizes.size() > static_cast<std::size_t>(kMaxRank) || checked_bytes(made[i].dtype(), sizes) < 0)
        fail(node, "the stacked results are too large");
      results.push_back(typed({made[i].dtype(), Shape(std::span<const std::int64_t>(sizes))}));
    }
    return give(scope, node, results);
  }

  Tensors all = {first, start};
  all.insert(all.end(), carried.begin(), carried.end());
  // One pass: the next number, the next condition, the carried values, the stacked ones.
  const auto pass = [&](const Tensors& now) {
    Tensors inputs(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(n) + 2);
    body.values.clear();
    Scope& fresh = inner_scope(scope, node, "body");
    Tensors made = run_inner(fresh, unknown(inputs));
    for (Tensor& t : made) t = alias(t);
    if (made[0].rank() != 0) made[0] = reshape(made[0], Shape{});
    made.insert(made.begin(), add(now[0], std::int64_t{1}));
    return made;
  };
  const auto goes_on = [&](const Tensors& now) {
    if (counted) return logical_and(now[1], less(now[0], most));
    return trips == nullptr ? alias(now[1]) : logical_and(now[1], less(now[0], reshape(trips->tensor, Shape{})));
  };
  const auto is_true = [&](const Operand* o) { return o == nullptr || (o->is_known() && only(*o) != 0); };
  const auto known_next = body.known.find(body.graph->outputs[0].name);
  const bool keeps_going = body.graph->outputs[0].name == body.graph->inputs[1].name ||
                           (known_next != body.known.end() && only(known_next->second) != 0);
  LoopOptions options;
  options.max_trips = most;
  LoopResult result = counted && is_true(condition) && keeps_going ? tapedeck::scan(pass, all, {}, {}, options, site)
                                                                   : while_loop(goes_on, pass, all, {}, options, site);
  Tensors results(result.carried.begin() + 2, result.carried.end());
  results.insert(results.end(), result.stacked.begin(), result.stacked.end());
  give(scope, node, results);
}

// body(state..., slices...) -> state..., slices of the results.
void Interpreter::run_scan(Scope& scope, const Node& node, Site site) {
  if (opset_of(node) < 9) fail(node, "this op is supported from opset 9 on");
  Scope& body = inner_scope(scope, node, "body");
  const auto number = node.attributes.find("num_scan_inputs");
  const std::int64_t slices = number == node.attributes.end() ? -1 : number->second.integer;
  if (slices < 1 || slices > static_cast<std::int64_t>(node.inputs.size())) fail(node, "'num_scan_inputs' does not fit");
  const std::size_t states = node.inputs.size() - static_cast<std::size_t>(slices);
  const auto list = [&](const char* name, std::size_t size) {
    const auto it = node.attributes.find(name);
    Integers values = it == node.attributes.end() ? Integers() : it->second.integers;
    if (!values.empty() && values.size() != size) fail(node, fmt::format("'{}' does not fit", name));
    values.resize(size);
    return values;
  };
  if (body.graph->outputs.size() < states) fail(node, "the body has too few results");
  const std::size_t stacked = body.graph->outputs.size() - states;
  const Integers in_axes = list("scan_input_axes", static_cast<std::size_t>(slices));
  const Integers in_reverse = list("scan_input_directions", static_cast<std::size_t>(slices));
  const Integers out_axes = list("scan_output_axes", stacked), out_reverse = list("scan_output_directions", stacked);
  Tensors carried, xs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Operand* o = operand(scope, node, i);
    if (o == nullptr) fail(node, "an operand is missing");
    if (i < states) {
      carried.push_back(o->tensor);
      continue;
    }
    const std::size_t at = i - states;
    const std::int64_t rank = o->tensor.rank(), axis = in_axes[at] < 0 ? in_axes[at] + rank : in_axes[at];
    if (axis < 0 || axis >= rank) fail(node, "an axis does not exist");
    Tensor x = axis == 0 ? o->tensor : movedim(o->tensor, axis, 0);
    xs.push_back(in_reverse[at] != 0 ? flip(x, {0}) : x);
    if (xs.back().size(0) != xs.front().size(0)) fail(node, "the scanned operands have different lengths");
  }
  const auto finished = [&](Tensors made) {
    for (std::size_t i = 0; i < stacked; ++i) {
      Tensor& t = made[states + i];
      const std::int64_t rank = t.rank(), axis = out_axes[i] < 0 ? out_axes[i] + rank : out_axes[i];
      if (axis < 0 || axis >= rank) fail(node, "an axis does not exist");
      if (out_reverse[i] != 0) t = flip(t, {0});
      if (axis != 0) t = movedim(t, 0, axis);
    }
    return made;
  };
  const auto slice_type = [](const Tensor& x) {
    return Type{x.dtype(), Shape(std::span<const std::int64_t>(x.shape().begin() + 1, x.shape().end()))};
  };
  if (pass_ == Pass::find_known) {
    const AbstractMode types;
    Tensors inputs;
    for (const Tensor& t : carried) inputs.push_back(typed(t.type()));
    for (const Tensor& x : xs) inputs.push_back(typed(slice_type(x)));
    Tensors made = run_inner(body, unknown(inputs));
    for (std::size_t i = 0; i < made.size(); ++i) {
      Integers sizes(made[i].shape().begin(), made[i].shape().end());
      if (i >= states) sizes.insert(sizes.begin(), xs[0].size(0));
      if (sizes.size() > static_cast<std::size_t>(kMaxRank) || checked_bytes(made[i].dtype(), sizes) < 0)
        fail(node, "the stacked results are too large");
      made[i] = typed({made[i].dtype(), Shape(std::span<const std::int64_t>(sizes))});
    }
    return give(scope, node, finished(made));
  }
  const auto pass = [&](const Tensors& now) {
    Scope& fresh = inner_scope(scope, node, "body");
    Tensors made = run_inner(fresh, unknown(now));
    for (Tensor& t : made) t = alias(t);
    return made;
  };
  const LoopResult result = tapedeck::scan(pass, carried, xs, {}, {}, site);
  Tensors made = result.carried;
  made.insert(made.end(), result.stacked.begin(), result.stacked.end());
  give(scope, node, finished(made));
}

}  // namespace tapedeck::onnx
