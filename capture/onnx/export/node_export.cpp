#include <tapedeck/capture/onnx/export/node_export.h>

#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/half.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace tapedeck::onnx {

namespace {

template <class Element>
void put(std::string& bytes, Element element) {
  bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
}

void put_number(std::string& bytes, double value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return put(bytes, static_cast<float>(value));
    case DType::f64:
      return put(bytes, value);
    case DType::f16:
      return put(bytes, kernels::to_f16(static_cast<float>(value)).bits);
    case DType::bf16:
      return put(bytes, kernels::to_bf16(static_cast<float>(value)).bits);
    case DType::i32:
      return put(bytes, static_cast<std::int32_t>(value));
    case DType::i64:
      return put(bytes, static_cast<std::int64_t>(value));
    case DType::u8:
      return put(bytes, static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
    case DType::boolean:
      return put(bytes, static_cast<std::uint8_t>(value != 0));
  }
}

bool lists(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// The dtype in which ONNX of this version has an op for numbers of this dtype.
DType computed_in(std::string_view op, DType dtype) {
  constexpr std::string_view kNotInBf16 =
      "Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cos Cosh Elu HardSigmoid HardSwish "
      "InstanceNormalization MaxPool Mish NegativeLogLikelihoodLoss Round Selu Shrink Sin Sinh Softplus Softsign Tan TopK";
  constexpr std::string_view kNotInU8 =
      "CumSum Gemm MatMul Neg Pow ReduceL1 ReduceL2 ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare Relu";
  constexpr std::string_view kNotInBool = "Less LessOrEqual Greater GreaterOrEqual Max Min ArgMax ArgMin";
  if (dtype == DType::bf16 && lists(kNotInBf16, op)) return DType::f32;
  if (dtype == DType::u8 && lists(kNotInU8, op)) return DType::i32;
  return dtype == DType::boolean && lists(kNotInBool, op) ? DType::u8 : dtype;
}

}  // namespace

Named::Named(const char* n, std::int64_t v) : name(n) {
  value.kind = AttributeKind::integer;
  value.integer = v;
}
Named::Named(const char* n, double v) : name(n) {
  value.kind = AttributeKind::real;
  value.real = v;
}
Named::Named(const char* n, const std::string& v) : name(n) {
  value.kind = AttributeKind::text;
  value.text = v;
}
Named::Named(const char* n, const Integers& v) : name(n) {
  value.kind = AttributeKind::integers;
  value.integers = v;
}

Named::Named(const char* n, std::shared_ptr<Graph> v) : name(n) {
  value.kind = AttributeKind::graph;
  value.graph = std::move(v);
}

// ---- terms ----

Term Term::as(DType dtype) const {
  if (dtype == dtype_) return *this;
  return at_->add("Cast", {*this}, dtype, {{"to", static_cast<std::int64_t>(element_type_of(dtype))}});
}
Term Term::apply(const char* op) const { return at_->add(op, {*this}, dtype_); }
Term Term::like(double number) const { return at_->number(number, dtype_); }

Term binary(const char* op, const Factor& a, const Factor& b) {
  const Term& first = a.is_term() ? a.term() : b.term();
  return first.at().add(op, {a.beside(b.term()), b.beside(a.term())}, first.dtype());
}

Term comparison(const char* op, const Factor& a, const Factor& b) {
  const Term& first = a.is_term() ? a.term() : b.term();
  return first.at().add(op, {a.beside(b.term()), b.beside(a.term())}, DType::boolean);
}

Term choose(const Term& condition, const Factor& a, const Factor& b) {
  const Term& first = a.is_term() ? a.term() : b.term();
  return first.at().add("Where", {condition, a.beside(b.term()), b.beside(a.term())}, first.dtype());
}

// ---- the node ----

NodeExport::NodeExport(ModelBuilder& model, NodeId node)
    : model_(model), id_(node), node_(model.graph().nodes[static_cast<std::size_t>(node)]), op_(node_.op->name) {
  for (const ValueId v : model.graph().inputs(node_)) given_.push_back(model.name_of(v));
  base_ = node_.n_outputs > 0 ? model.name_of(node_.first_output) : op_;
}

Term NodeExport::operator[](int i) {
  if (i >= count()) return {};
  return {*this, given_[static_cast<std::size_t>(i)], in(i).dtype};
}

const Type& NodeExport::in(int i) const {
  return model_.graph().values[static_cast<std::size_t>(model_.graph().inputs(node_)[static_cast<std::size_t>(i)])].type;
}
const Type& NodeExport::out(int i) const {
  return model_.graph().values[static_cast<std::size_t>(node_.first_output + i)].type;
}
bool NodeExport::wants(int i) const { return i < node_.n_outputs && model_.is_read(node_.first_output + i); }

Term NodeExport::add(const char* op, const Terms& operands, DType result, const Attributes& attributes) {
  return add_several(op, operands, {result}, attributes)[0];
}

Term NodeExport::add_stated(const char* op, const Terms& operands, const Type& result, const Attributes& attributes) {
  const Term term = add(op, operands, result.dtype, attributes);
  stated_.emplace_back(term.name(), result);
  return term;
}

Terms NodeExport::add_several(const char* op, const Terms& operands, const std::vector<DType>& results,
                              const Attributes& attributes) {
  const DType own = operands.empty() ? DType::f32 : operands[0].dtype(), wide = computed_in(op, own);
  if (own != wide) return add_wide(op, operands, results, attributes, own, wide);
  Node node;
  node.op = op;
  for (const Term& t : operands) node.inputs.push_back(t.name());
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
  for (const Named& a : attributes) node.attributes[a.name] = a.value;
  Terms terms;
  for (const DType dtype : results) {
    node.outputs.push_back(model_.new_name(base_ + "/" + op));
    terms.emplace_back(*this, node.outputs.back(), dtype);
  }
  nodes_.push_back(std::move(node));
  return terms;
}

Terms NodeExport::add_wide(const char* op, Terms operands, std::vector<DType> results, const Attributes& attributes, DType own,
                           DType wide) {
  for (Term& t : operands)
    if (!t.name().empty() && t.dtype() == own) t = t.as(wide);
  const std::vector<DType> wanted = results;
  const bool truth = own == DType::boolean && op[0] != 'M';  // comparisons give truth values whatever they compare
  for (DType& d : results)
    if (d == own && !truth) d = wide;
  Terms terms = add_several(op, operands, results, attributes);
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = terms[i].as(wanted[i]);
  return terms;
}

Term NodeExport::constant(const Type& type, std::string bytes) {
  return {*this, model_.constant(type, std::move(bytes)), type.dtype};
}

Term NodeExport::number(double value, DType dtype) {
  std::string bytes;
  put_number(bytes, value, dtype);
  return constant({dtype, {}}, std::move(bytes));
}

Term NodeExport::integers(const Shape& shape, const Integers& values) {
  std::string bytes;
  for (const std::int64_t v : values) put(bytes, v);
  return constant({DType::i64, shape}, std::move(bytes));
}

Term NodeExport::list(const Integers& values) { return integers({static_cast<std::int64_t>(values.size())}, values); }

Term NodeExport::reals(const Shape& shape, const std::vector<double>& values, DType dtype) {
  std::string bytes;
  for (const double v : values) put_number(bytes, v, dtype);
  return constant({dtype, shape}, std::move(bytes));
}

Term NodeExport::filled(const Shape& shape, double value, DType dtype) {
  if (shape.rank == 0) return number(value, dtype);
  Attribute one;
  one.kind = AttributeKind::tensor;
  std::string bytes;
  put_number(bytes, value, dtype);
  one.tensor = std::make_shared<TensorData>(tensor_data("", {dtype, {1}}, std::move(bytes)));
  Named attribute("value", 0);
  attribute.value = one;
  return add("ConstantOfShape", {list(list_of(shape))}, dtype, {attribute});
}

Terms NodeExport::inlined(const tapedeck::Graph& region, const Terms& inputs) {
  std::vector<std::string> names;
  for (const Term& t : inputs) names.push_back(t.name());
  ModelBuilder inner(model_, id_, region, names);
  export_nodes(inner);
  for (Node& node : inner.take_nodes()) nodes_.push_back(std::move(node));
  inlined_values_.merge(inner.take_values());
  Terms results;
  for (const ValueId v : region.outputs)
    results.emplace_back(*this, inner.name_of(v), region.values[static_cast<std::size_t>(v)].type.dtype);
  return results;
}

Term NodeExport::in_outermost(const std::function<Term()>& write) {
  std::vector<Node> own;
  std::swap(own, nodes_);
  const Term result = write();
  for (Node& n : nodes_) model_.outermost().append(std::move(n), node_.origin);
  nodes_ = std::move(own);
  return result;
}

// A result that is an operand, a constant or a result already gets its name from a copy.
void NodeExport::finish(const Terms& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& own = results[i].name();
    if (own.empty() || i >= static_cast<std::size_t>(node_.n_outputs)) continue;
    const std::string& wanted = model_.name_of(node_.first_output + static_cast<ValueId>(i));
    const auto makes = [&](const Node& n) { return std::find(n.outputs.begin(), n.outputs.end(), own) != n.outputs.end(); };
    const auto maker = std::find_if(nodes_.begin(), nodes_.end(), makes);
    if (maker == nodes_.end()) {
      nodes_.push_back(copy_node(own, wanted));
      continue;
    }
    const std::string old = own;  // the same term may be another result
    for (Node& n : nodes_) {
      std::replace(n.inputs.begin(), n.inputs.end(), old, wanted);
      std::replace(n.outputs.begin(), n.outputs.end(), old, wanted);
    }
    for (auto& [name, type] : stated_)
      if (name == old) name = wanted;
  }
  for (const auto& [name, type] : stated_) model_.state_type(name, type);
  for (const auto& [name, value] : inlined_values_) model_.state_type(value);
  for (Node& n : nodes_) model_.append(std::move(n), node_.origin);
}

// ---- graphs inside the node ----

InnerGraph::InnerGraph(NodeExport& n) : n_(n), graph_(std::make_shared<Graph>()) {
  n.model_.enter();
  graph_->name = n.model_.new_name(n.op_ + " of " + n.base_);
  std::swap(around_, n.nodes_);
  std::swap(values_around_, n.inlined_values_);
}

// After a refusal, which ends the graph too early.
InnerGraph::~InnerGraph() {
  if (!open_) return;
  n_.model_.leave();
  std::swap(around_, n_.nodes_);
  std::swap(values_around_, n_.inlined_values_);
}

Term InnerGraph::input(const std::string& name, const Type& type) {
  graph_->inputs.push_back(value_info(n_.model_.new_name(n_.base_ + "/" + name), type));
  return {n_, graph_->inputs.back().name, type.dtype};
}

// A result must have a node of the graph that computes it, and it must not be another result, too.
void InnerGraph::output(const Term& result, const Type& type) {
  const auto makes = [&](const Node& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), result.name()) != node.outputs.end();
  };
  const auto same = [&](const ValueInfo& v) { return v.name == result.name(); };
  const bool own = std::any_of(n_.nodes_.begin(), n_.nodes_.end(), makes) &&
                   std::none_of(graph_->outputs.begin(), graph_->outputs.end(), same);
  graph_->outputs.push_back(value_info(own ? result.name() : result.apply("Identity").name(), type));
}

Named InnerGraph::end(const char* attribute) {
  for (Node& node : n_.nodes_) n_.model_.describe(node, n_.node_.origin);
  graph_->nodes = std::move(n_.nodes_);
  graph_->values = std::move(n_.inlined_values_);
  n_.nodes_ = std::move(around_);
  n_.inlined_values_ = std::move(values_around_);
  n_.model_.leave();
  open_ = false;
  return {attribute, graph_};
}

// ---- shapes ----

Integers list_of(const Ints& values) { return {values.begin(), values.end()}; }
Integers list_of(const Shape& shape) { return {shape.begin(), shape.end()}; }
Shape shape_of(const Integers& sizes) { return Shape(std::span<const std::int64_t>(sizes)); }

Term reshaped(const Term& x, const Integers& sizes) {
  Attributes attributes;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) attributes.emplace_back("allowzero", 1);
  return x.at().add("Reshape", {x, x.at().list(sizes)}, x.dtype(), attributes);
}
Term reshaped(const Term& x, const Shape& shape) { return reshaped(x, list_of(shape)); }
Term transposed(const Term& x, const Integers& axes) { return x.at().add("Transpose", {x}, x.dtype(), {{"perm", axes}}); }
Term expanded(const Term& x, const Shape& shape) { return x.at().add("Expand", {x, x.at().list(list_of(shape))}, x.dtype()); }
Term joined(const Terms& parts, std::int64_t axis) {
  return parts[0].at().add("Concat", parts, parts[0].dtype(), {{"axis", axis}});
}
Term part_of(const Term& x, std::int64_t axis, std::int64_t start, std::int64_t end) {
  NodeExport& n = x.at();
  return n.add("Slice", {x, n.list({start}), n.list({end}), n.list({axis})}, x.dtype());
}

Term padded(const Term& x, const Integers& before, const Integers& after, double value) {
  Integers pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  const auto is_zero = [](std::int64_t p) { return p == 0; };
  if (std::all_of(pads.begin(), pads.end(), is_zero)) return x;
  Terms operands = {x, x.at().list(pads)};
  if (value != 0) operands.push_back(x.like(value));
  return x.at().add("Pad", operands, x.dtype());
}

Term reduced(const char* op, const Term& x, const Integers& axes, bool keepdims) {
  return x.at().add(op, {x, x.at().list(axes)}, x.dtype(), {{"keepdims", keepdims ? 1 : 0}});
}
Term product(const Term& a, const Term& b) { return binary("MatMul", a, b); }
Term scattered(const Term& x, const Term& places, const Term& src, std::int64_t axis, bool adds) {
  return x.at().add("ScatterElements", {x, places, src}, x.dtype(),
                    {{"axis", axis}, {"reduction", std::string(adds ? "add" : "none")}});
}
Term counted(NodeExport& n, std::int64_t count, std::int64_t start) {
  const auto whole = [&](std::int64_t v) { return n.integers({}, {v}); };
  return n.add("Range", {whole(start), whole(start + count), whole(1)}, DType::i64);
}
Term gathered(const Term& x, const Term& places, std::int64_t axis) {
  return x.at().add("Gather", {x, places}, x.dtype(), {{"axis", axis}});
}

}  // namespace tapedeck::onnx
