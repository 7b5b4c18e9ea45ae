// Turns functions into regions. Each function runs once on abstract tensors, with a tape of its own. The nodes on which its
// results depend become the region:
//
//       [&](x) { return x * w + 1; }    ->    region (%x, %w) { %1 = mul(%x, %w)  %2 = constant()  %3 = add(%1, %2)  return %3
//       }
#include <tapedeck/engine/control/control.h>

#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/site_note.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tapedeck {

using detail::TensorImpl;

struct RegionTrace::Impl {
  std::vector<Input> declared;
  Recorder tape{true};
  std::vector<Tensor> inputs, outputs;
  std::vector<ValueId> input_values, output_values;
  std::vector<bool> wanted_nodes, wanted_values;  // whether a result depends on it, or it has an effect

  const Outside& outside(ValueId v) const { return tape.outside[tape.info[v].outside]; }
  bool is_declared(const Outside& o) const {
    return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.impl() == o.tensor.impl(); });
  }
  // Whether the tensor is a number or a table that the function made and that no other code holds.
  bool is_constant(const Outside& o) const {
    const TensorImpl& t = *o.tensor.impl();
    return t.refs.load() == 1 && t.storage && t.storage->refs.load() == 1 && !t.requires_grad && t.role == Role::none &&
           !t.link;
  }
  void check_writes(const char* op) const;
  void find_wanted(const char* op);
};

void RegionTrace::Impl::check_writes(const char* op) const {
  for (const Outside& o : tape.outside)
    if (o.last != o.first && !is_declared(o))
      throw CaptureError(error_text(op,
                                    fmt::format("the function writes {} '{}' from outside in place; carry it instead",
                                                to_string(o.tensor.type()), o.tensor.name().view()),
                                    o.read_at));
}

void RegionTrace::Impl::find_wanted(const char* op) {
  const Graph& g = tape.graph;
  wanted_nodes.assign(g.nodes.size(), false);
  wanted_values.assign(g.values.size(), false);
  for (ValueId v : output_values) wanted_values[v] = true;
  for (NodeId n = g.node_count(); n-- > 0;) {
    const Node& node = g.nodes[n];
    bool wanted = node.op->is(kEffect);
    for (std::int32_t k = 0; k < node.n_outputs; ++k) wanted = wanted || wanted_values[node.first_output + k];
    if (!wanted) continue;
    wanted_nodes[n] = true;
    if (node.op == &ops::custom_gradient)
      throw CaptureError(error_text(op, "a custom gradient inside a loop or branch cannot be captured", tape.notes[n].site));
    for (ValueId v : g.inputs(node)) wanted_values[v] = true;
  }
}

RegionTrace::RegionTrace(const char* op, const std::vector<Input>& inputs,
                         const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn, Site site)
    : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  i.declared = inputs;
  i.tape.nested = true;
  ThreadState& state = thread_state();
  {
    Scoped<Recorder*> tape(state.tape, &i.tape);
    const AbstractMode abstract;
    Scoped<std::int32_t> region(state.region, kNone);
    Scoped<NodeId> twin(state.twin, kNone);
    Scoped<VjpCalls*> calls(state.calls, nullptr);
    Scoped<std::unordered_map<const void*, std::int32_t>> draws(state.draws, {});
    for (const Input& input : inputs) {
      i.inputs.push_back(abstract_tensor(input.type));
      i.input_values.push_back(i.tape.declare(i.inputs.back().impl(), site));
    }
    i.outputs = fn(i.inputs);
    for (std::size_t k = 0; k < i.outputs.size(); ++k) {
      if (!i.outputs[k].defined())
        throw TypeError(error_text(op, fmt::format("result {} of the function is undefined", k), site));
      i.output_values.push_back(i.tape.value_of(i.outputs[k].impl(), site));
      results_.push_back(i.outputs[k].type());
    }
  }
  i.outputs.clear();  // a tensor that only the function held now has a reference count of one
  i.check_writes(op);
  i.find_wanted(op);
}

RegionTrace::~RegionTrace() = default;
RegionTrace::RegionTrace(RegionTrace&&) noexcept = default;

std::vector<Tensor> RegionTrace::reads() const {
  std::vector<Tensor> all;
  for (const Outside& o : impl_->tape.outside)
    if (impl_->wanted_values[o.first] && !impl_->is_declared(o) && !impl_->is_constant(o)) all.push_back(o.tensor);
  return all;
}

namespace {

// Gives every input of a region a name that no other input has: the wanted name, or that name with a number.
class InputNames {
 public:
  Name unique(const std::string& wanted) {
    std::string name = wanted;
    for (int k = 1; !taken_.insert(name).second; ++k) name = fmt::format("{}.{}", wanted, k);
    return Name(name);
  }

 private:
  std::unordered_set<std::string> taken_;
};

ValueId add_constant(Graph& g, const Outside& o) {
  const Tensor& t = o.tensor;
  Literal literal;
  literal.type = t.type();
  auto bytes = std::make_shared<std::vector<unsigned char>>(static_cast<std::size_t>(t.bytes()));
  // The tensor is dense, because the function itself made it.
  const detail::ResidentTensors resident(*t.impl());
  std::copy_n(static_cast<const unsigned char*>(t.impl()->resident_data()), bytes->size(), bytes->data());
  literal.data = std::shared_ptr<const void>(bytes, bytes->data());
  const ConstantAttrs attrs{{g.add_constant(literal)}};
  Origin origin;
  origin.site = site_note(o.read_at);
  const NodeId n = g.add_node(ops::constant, {}, &attrs, {&literal.type, 1}, origin);
  return g.nodes[n].first_output;
}

}  // namespace

Region RegionTrace::region(const std::vector<Tensor>& captured) const {
  const Impl& i = *impl_;
  auto graph = std::make_shared<Graph>();
  graph->name = Name("region");
  std::vector<ValueId> map(i.tape.graph.values.size(), kNone);
  std::unordered_map<const TensorImpl*, ValueId> input_of;
  InputNames names;
  for (std::size_t k = 0; k < i.declared.size(); ++k)
    map[i.input_values[k]] = graph->add_input(names.unique(i.declared[k].name), i.declared[k].type);
  for (const Tensor& t : captured)
    input_of.emplace(t.impl(), graph->add_input(names.unique(t.name().empty() ? "outer" : t.name().str()), t.type()));
  for (const Outside& o : i.tape.outside) {
    ValueId& v = map[o.first];
    if (v != kNone || !i.wanted_values[o.first]) continue;
    const auto known = input_of.find(o.tensor.impl());
    v = known != input_of.end() ? known->second : add_constant(*graph, o);
  }
  for (NodeId n = 0; n < i.tape.graph.node_count(); ++n) {
    if (!i.wanted_nodes[n]) continue;
    const Node& node = i.tape.graph.nodes[n];
    std::vector<ValueId> inputs;
    for (ValueId v : i.tape.graph.inputs(node)) inputs.push_back(map[v]);
    Origin origin = node.origin;
    origin.site = site_note(i.tape.notes[n].site);
    const NodeId made = graph->add_node(*node.op, inputs, i.tape.graph.attributes(node), i.tape.graph.output_types(node),
                                        origin, {}, i.tape.graph.regions_of(node));
    for (std::int32_t k = 0; k < node.n_outputs; ++k) map[node.first_output + k] = graph->nodes[made].first_output + k;
  }
  for (ValueId v : i.output_values) {
    graph->outputs.push_back(map[v]);
    graph->output_names.emplace_back();
  }
  return graph;
}

}  // namespace tapedeck
