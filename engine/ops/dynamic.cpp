// Runs a dynamic region: a part of a step whose sizes are known only while it runs (dynamic.h).
//
// The nodes run one by one through dispatch. Ops that count elements count again. The attribute `follows` of the node lists
// elements of attributes that are sizes of values, such as
//
//       y.shape.0=x@1      element 0 of the attribute `shape` of the node that makes %y is the size of %x along axis 1
#include <tapedeck/engine/ops/dynamic.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/control/mask_counts.h>
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ir/site_note.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace tapedeck {

namespace {

// An element of an attribute that must equal the size of a value.
struct Follow {
  NodeId node = kNone;
  std::size_t offset = 0;  // of the element, in bytes from the start of the attribute struct
  ValueId value = kNone;
  int axis = 0;
};

ValueId value_named(const Graph& g, std::string_view name) {
  for (ValueId v = 0; v < g.value_count(); ++v)
    if (g.value_name(v) == name) return v;
  return kNone;
}

int small_number(std::string_view text) {
  if (text.empty() || text.size() > 2 || text.find_first_not_of("0123456789") != text.npos) return -1;
  return std::stoi(std::string(text));
}

// Parses one statement of `follows`. The result has node == kNone if the statement does not fit the region.
Follow parse_follow(const Graph& g, std::string_view text) {
  const std::size_t equals = text.rfind('='), at = text.rfind('@');
  if (equals == text.npos || at == text.npos || at < equals) return {};
  std::string_view left = text.substr(0, equals);
  const std::size_t dot = left.rfind('.');
  if (dot == left.npos || dot == 0) return {};
  const int element = small_number(left.substr(dot + 1));
  left = left.substr(0, dot);
  const std::size_t field_dot = left.rfind('.');
  if (field_dot == left.npos) return {};
  const ValueId made = value_named(g, left.substr(0, field_dot)),
                value = value_named(g, text.substr(equals + 1, at - equals - 1));
  const int axis = small_number(text.substr(at + 1));
  if (made == kNone || value == kNone || g.values[made].node == kNone || axis < 0 || axis >= g.values[value].type.shape.rank)
    return {};
  const NodeId n = g.values[made].node;
  const Node& node = g.nodes[n];
  if (value >= node.first_output) return {};
  for (const Field& field : fields_of(*node.op)) {
    if (field.kind != FieldKind::ints || field.name != left.substr(field_dot + 1)) continue;
    const Ints& list = field_of<Ints>(g.attributes(node), field);
    if (element < 0 || element >= list.size) return {};
    return {n, field.offset + offsetof(Ints, items) + static_cast<std::size_t>(element) * sizeof(std::int64_t), value, axis};
  }
  return {};
}

std::vector<Follow> parse_follows(const Graph& g, std::string_view text) {
  std::vector<Follow> follows;
  while (!text.empty()) {
    const std::size_t comma = text.find(", ");
    follows.push_back(parse_follow(g, text.substr(0, comma)));
    text = comma == text.npos ? std::string_view() : text.substr(comma + 2);
  }
  return follows;
}

// One run of a region. The nodes run one by one through dispatch, and each value is freed after the last node that reads it.
class RegionRun {
 public:
  RegionRun(const Graph& g, const std::vector<Follow>& follows)
      : g_(g), follows_(follows), values_(g.values.size()), shapes_(g.values.size()), last_(g.values.size(), kNone) {
    for (NodeId n = 0; n < g.node_count(); ++n)
      for (ValueId v : g.inputs(g.nodes[n])) last_[v] = n;
    for (ValueId v : g.outputs) last_[v] = g.node_count();
  }

  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    std::copy(inputs.begin(), inputs.end(), values_.begin());
    for (std::size_t i = 0; i < inputs.size(); ++i) shapes_[i] = inputs[i].shape();
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      run_node(n, g_.nodes[n]);
      drop_after(n);
    }
    std::vector<Tensor> results;
    for (ValueId v : g_.outputs) results.push_back(values_[v]);
    return results;
  }

 private:
  void run_node(NodeId n, const Node& node) {
    if (const Literal* literal = g_.literal(node)) {
      values_[node.first_output] = constant_tensor(g_, node);
      shapes_[node.first_output] = literal->type.shape;
      return;
    }
    std::vector<Tensor> operands, results;
    for (ValueId v : g_.inputs(node)) operands.push_back(values_[v]);
    const Site site = site_of(node.origin);
    if (node.n_regions > 0) {
      results = apply_regions(*node.op, g_.regions_of(node), operands, g_.attributes(node), site);
    } else {
      std::vector<unsigned char> attrs;
      if (node.attrs != kNone) {
        const auto* from = static_cast<const unsigned char*>(g_.attributes(node));
        attrs.assign(from, from + node.op->attrs->size);
      }
      if (counts_elements(*node.op)) set_count(attrs.data(), read_count(operands.back()));
      for (const Follow& f : follows_)
        if (f.node == n) std::memcpy(attrs.data() + f.offset, &shapes_[f.value].sizes[f.axis], sizeof(std::int64_t));
      const std::vector<Type> declared = node.op->is(kDeclaredTypes) ? g_.output_types(node) : std::vector<Type>{};
      results = apply_all(*node.op, operands, attrs.empty() ? nullptr : attrs.data(), site, declared);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      shapes_[static_cast<std::size_t>(node.first_output) + i] = results[i].shape();
      values_[static_cast<std::size_t>(node.first_output) + i] = std::move(results[i]);
    }
  }

  void drop_after(NodeId n) {
    const Node& node = g_.nodes[n];
    for (ValueId v : g_.inputs(node))
      if (last_[v] == n) values_[v] = Tensor();
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (last_[v] == kNone) values_[v] = Tensor();
  }

  const Graph& g_;
  const std::vector<Follow>& follows_;
  std::vector<Tensor> values_;
  std::vector<Shape> shapes_;  // for each value; kept after the value is freed
  std::vector<NodeId> last_;   // for each value: the last node that reads it
};

}  // namespace

static void infer_dynamic(Infer& f) {
  const Graph& region = *f.regions[0];
  if (f.inputs.size() != static_cast<std::size_t>(region.n_inputs))
    f.fail(fmt::format("{} operands for a region with {} inputs", f.inputs.size(), region.n_inputs));
  for (std::size_t i = 0; i < f.inputs.size(); ++i)
    if (f.inputs[i] != region.values[i].type)
      f.fail(fmt::format("operand {} is {}, the region wants {}", i, to_string(f.inputs[i]), to_string(region.values[i].type)));
  for (const Follow& follow : parse_follows(region, f.attributes<DynamicAttrs>().follows.view()))
    if (follow.node == kNone)
      f.fail(fmt::format("`follows` speaks of what the region does not have: {}", f.attributes<DynamicAttrs>().follows.view()));
  f.outputs.clear();
  for (ValueId v : region.outputs) f.outputs.push_back(region.values[v].type);
}

static std::vector<Tensor> run_dynamic(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                                       std::span<const Type> outputs, Site site) {
  const Unrecorded unrecorded;
  const std::vector<Follow> follows = parse_follows(*regions[0], static_cast<const DynamicAttrs*>(attrs)->follows.view());
  std::vector<Tensor> results = RegionRun(*regions[0], follows).run(inputs);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].type() != outputs[i])
      throw ExecutionError(error_text("dynamic",
                                      fmt::format("result {} came out as {}, the plan has room for {}", i,
                                                  to_string(results[i].type()), to_string(outputs[i])),
                                      site));
  return results;
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/dynamic.h>
