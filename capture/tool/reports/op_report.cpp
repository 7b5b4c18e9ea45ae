// The JSON of `tapedeck ops`: the declarations of each op block, and the answers of type inference when the examples are tried
// with other dtypes.
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/ir/trait_names.h>
#include <tapedeck/engine/text/example.h>

#include <cstring>

namespace tapedeck::tool {

namespace {

Json traits_of(const Op& op) {
  Json names = Json::array();
  for (const TraitName& t : trait_names())
    if (op.is(t.trait)) names.push_back(t.name);
  return names;
}

const char* kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::integer:
      return "int";
    case FieldKind::real:
      return "float";
    case FieldKind::boolean:
      return "bool";
    case FieldKind::string:
      return "string";
    case FieldKind::dtype:
      return "dtype";
    case FieldKind::ints:
      return "ints";
    case FieldKind::tensor:
      return "tensor";
  }
  return "";
}

template <class T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Json default_of(const Op& op, const Field& field) {
  const unsigned char* at = static_cast<const unsigned char*>(op.attrs->defaults) + field.offset;
  switch (field.kind) {
    case FieldKind::integer:
      return read<std::int64_t>(at);
    case FieldKind::real: {
      const auto value = read<double>(at);
      if (value - value == 0) return value;
      return value != value ? "nan" : value > 0 ? "inf" : "-inf";
    }
    case FieldKind::boolean:
      return read<bool>(at);
    case FieldKind::string:
      return read<Name>(at).str();
    case FieldKind::dtype:
      return dtype_name(read<DType>(at));
    case FieldKind::ints: {
      Json list = Json::array();
      for (std::int64_t v : read<Ints>(at)) list.push_back(v);
      return list;
    }
    case FieldKind::tensor:
      return nullptr;
  }
  return nullptr;
}

Json attributes_of(const Op& op) {
  Json list = Json::array();
  for (int i = 0; op.attrs && i < op.attrs->n_fields; ++i) {
    const Field& f = op.attrs->fields[i];
    list.push_back({{"name", f.name},
                    {"kind", kind_name(f.kind)},
                    {"required", f.required},
                    {"default", f.required ? Json() : default_of(op, f)}});
  }
  return list;
}

bool accepts(const ParsedExample& e, const std::vector<Type>& operands) {
  std::vector<Type> results;
  try {
    infer_types(*e.op, operands, e.attrs(), results);
  } catch (const TypeError&) {
    return false;
  }
  return true;
}

// Whether some example is still right when the operands of the first one's dtype have this one.
bool takes(const std::vector<ParsedExample>& examples, DType dtype) {
  for (const ParsedExample& e : examples) {
    std::vector<Type> operands = e.types();
    if (operands.empty()) continue;
    const DType first = operands[0].dtype;
    for (Type& t : operands)
      if (t.dtype == first) t.dtype = dtype;
    if (accepts(e, operands)) return true;
  }
  return false;
}

Json types_of(const std::vector<ParsedExample>& examples) {
  Json names = Json::array();
  for (int d = 0; d < kDTypeCount; ++d)
    if (takes(examples, static_cast<DType>(d))) names.push_back(dtype_name(static_cast<DType>(d)));
  return names;
}

Json cost_of(const ParsedExample& e) {
  const std::vector<Type> operands = e.types();
  std::vector<Type> results;
  infer_types(*e.op, operands, e.attrs(), results);
  Cost cost;
  if (e.op->cost)
    cost = e.op->cost(operands, results, e.attrs());
  else
    for (const std::vector<Type>* types : {&operands, static_cast<const std::vector<Type>*>(&results)})
      for (const Type& t : *types) cost.bytes += static_cast<double>(t.bytes());
  return {{"example", e.text},
          {"flops", cost.flops},
          {"bytes", cost.bytes},
          {"us", cost_us(*e.op, operands, results, e.attrs())},
          {"workspace", workspace_bytes(*e.op, operands, results, e.attrs())}};
}

Json range_of(int least, int most) { return {{"min", least}, {"max", most < 0 ? Json() : Json(most)}}; }

Json in_place_of(const Op& op) {
  Json pairs = Json::array();
  for (const InplacePair& p : op.inplace) pairs.push_back({{"output", p.output}, {"input", p.input}});
  return pairs;
}

Json indices_of(std::uint32_t bits) {
  Json indices = Json::array();
  for (int i = 0; i < 32; ++i)
    if (bits >> i & 1) indices.push_back(i);
  return indices;
}

// Operands and results whose images may lie apart.
Json batch_strides_of(const Op& op) {
  return {{"inputs", indices_of(op.batch_strides.inputs)}, {"outputs", indices_of(op.batch_strides.outputs)}};
}

Json op_json(const Op& op) {
  std::vector<ParsedExample> examples;
  for (const char* text : op.examples) examples.push_back(parse_example(op, text));
  Json j;
  j["name"] = op.name;
  j["doc"] = op.doc;
  j["types"] = types_of(examples);
  j["inputs"] = range_of(op.min_inputs, op.max_inputs);
  j["outputs"] = range_of(op.min_outputs, op.max_outputs);
  j["attributes"] = attributes_of(op);
  j["gradient"] = op.vjp != nullptr;
  j["no_gradient"] = op.vjp ? Json() : Json(op.no_gradient);
  j["traits"] = traits_of(op);
  j["in_place"] = in_place_of(op);
  j["batch_strides"] = batch_strides_of(op);
  j["random"] = op.is(kRandom);
  j["effect"] = op.is(kEffect);
  j["cost"] = examples.empty() ? Json() : cost_of(examples[0]);
  j["version"] = op.version;
  j["cuda"] = op.kernels[static_cast<int>(DeviceType::cuda)] != nullptr;
  j["examples"] = op.examples;
  return j;
}

}  // namespace

std::string ops_report(const std::vector<const Op*>& ops) {
  Json list = Json::array();
  for (const Op* op : ops) list.push_back(op_json(*op));
  const Json report = {{"schema", "tapedeck.ops/1"}, {"ops", list}};
  return text_of(report);
}

}  // namespace tapedeck::tool
