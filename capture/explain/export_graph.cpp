#include <tapedeck/capture/explain/export_graph.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <cstring>

namespace tapedeck {

namespace {

std::string output_name(const Graph& g, std::size_t i) {
  const bool named = i < g.output_names.size() && !g.output_names[i].empty();
  return named ? g.output_names[i].str() : g.value_name(g.outputs[i]);
}

// ---- DOT ----

// In double quotes. Bytes that are no UTF-8 are replaced; a line break in a name is a space, and one of ours is \n.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : to_utf8(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

// Two lines in double quotes.
std::string quoted(const std::string& first, const std::string& second) {
  const std::string a = quoted(first), b = quoted(second);
  return a.substr(0, a.size() - 1) + "\\n" + b.substr(1);
}

const char* colour(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "#dbe9f6";
    case Phase::backward:
      return "#fbe3d0";
    case Phase::update:
      return "#dff0d8";
  }
  return "#ffffff";
}

// The name of a value's vertex: v of inputs and state, n of the node that makes it.
std::string vertex_of(const Graph& g, ValueId v) {
  return g.values[v].node == kNone ? fmt::format("v{}", v) : fmt::format("n{}", g.values[v].node);
}

std::string edge_label(const Graph& g, ValueId v) { return quoted(g.value_name(v), to_string(g.values[v].type)); }

// ---- JSON lines ----

template <class T>
T read(const void* attributes, const Field& f) {
  T value;
  std::memcpy(&value, static_cast<const char*>(attributes) + f.offset, sizeof value);
  return value;
}

void write_names(const Graph& g, const char* key, std::span<const ValueId> values, JsonWriter* out) {
  out->key(key).open('[');
  for (const ValueId v : values) out->value(g.value_name(v));
  out->close(']');
}

void write_attribute(const void* attributes, const Field& f, JsonWriter* out) {
  out->key(f.name);
  switch (f.kind) {
    case FieldKind::integer:
      out->value(read<std::int64_t>(attributes, f));
      return;
    case FieldKind::real:
      out->value(read<double>(attributes, f));
      return;
    case FieldKind::boolean:
      out->value(read<bool>(attributes, f));
      return;
    case FieldKind::string:
      out->value(std::string_view(read<Name>(attributes, f).view()));
      return;
    case FieldKind::dtype:
      out->value(dtype_name(read<DType>(attributes, f)));
      return;
    case FieldKind::tensor:
      out->value(static_cast<std::int64_t>(read<TensorIndex>(attributes, f).index));
      return;
    case FieldKind::ints:
      out->open('[');
      for (const std::int64_t v : read<Ints>(attributes, f)) out->value(v);
      out->close(']');
      return;
  }
}

void write_attributes(const Graph& g, const Node& node, JsonWriter* out) {
  out->key("attributes").open('{');
  const AttrSchema* schema = node.op->attrs;
  const void* attributes = g.attributes(node);
  for (int i = 0; schema && attributes && i < schema->n_fields; ++i) write_attribute(attributes, schema->fields[i], out);
  out->close('}');
}

void write_value(const Graph& g, ValueId v, JsonWriter* out) {
  out->key("name").value(g.value_name(v));
  out->key("type").value(to_string(g.values[v].type));
  out->key("bytes").value(g.values[v].type.bytes());
}

void write_origin(const Origin& origin, JsonWriter* out) {
  out->key("phase").value(phase_name(origin.phase));
  if (!origin.path.empty()) out->key("path").value(origin.path.view());
  if (!origin.site.empty()) out->key("site").value(origin.site.view());
  if (!origin.twin.empty()) out->key("twin").value(origin.twin.view());
  if (origin.clone) out->key("clone_of").value(origin.of.view());
  if (origin.region != kNone) out->key("checkpoint_region").value(origin.region);
}

std::string node_line(const Graph& g, NodeId n) {
  const Node& node = g.nodes[n];
  JsonWriter out;
  out.open('{').key("kind").value("node").key("index").value(n);
  out.key("op").value(node.op->name).key("version").value(static_cast<std::int64_t>(node.op->version));
  write_names(g, "inputs", g.inputs(node), &out);
  if (node.n_after > 0) write_names(g, "after", g.after(node), &out);
  out.key("outputs").open('[');
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
    out.open('{');
    write_value(g, v, &out);
    out.close('}');
  }
  out.close(']');
  write_attributes(g, node, &out);
  if (const Literal* literal = g.literal(node)) {
    out.key("constant").open('{').key("type").value(to_string(literal->type));
    out.key("tensor").value(literal->tensor.view()).close('}');
  }
  if (node.n_regions > 0) {
    out.key("regions").open('[');
    for (const Region& region : g.regions_of(node)) out.value(print(*region));
    out.close(']');
  }
  write_origin(node.origin, &out);
  out.key("text").value(g.node_text(n)).close('}');
  return out.take() + "\n";
}

std::string given_line(const Graph& g, ValueId v) {
  JsonWriter out;
  out.open('{').key("kind").value(g.is_input(v) ? "input" : "state");
  write_value(g, v, &out);
  out.key("role").value(role_name(g.values[v].role)).close('}');
  return out.take() + "\n";
}

}  // namespace

std::string graph_dot(const Graph& g) {
  std::string text = fmt::format("digraph {} {{\n  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\"];\n",
                                 quoted(g.name.str()));
  text += "  edge [fontname=\"sans-serif\", fontsize=9];\n";
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v)
    text += fmt::format("  v{} [label={}, shape={}];\n", v, edge_label(g, v), g.is_input(v) ? "ellipse" : "cylinder");
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    const std::string path = node.origin.path.empty() ? "" : node.origin.path.str();
    text += fmt::format("  n{} [label={}, tooltip={}, fillcolor=\"{}\"{}];\n", n,
                        path.empty() ? quoted(node.op->name) : quoted(node.op->name, path), quoted(g.node_text(n)),
                        colour(node.origin.phase), node.origin.clone ? ", style=\"filled,dashed\"" : "");
    for (const ValueId v : g.inputs(node))
      text += fmt::format("  {} -> n{} [label={}];\n", vertex_of(g, v), n, edge_label(g, v));
    for (const ValueId v : g.after(node)) text += fmt::format("  {} -> n{} [style=dotted];\n", vertex_of(g, v), n);
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    text += fmt::format("  o{} [label={}, shape=ellipse, peripheries=2];\n", i, quoted(output_name(g, i)));
    text += fmt::format("  {} -> o{} [label={}];\n", vertex_of(g, g.outputs[i]), i, edge_label(g, g.outputs[i]));
  }
  for (const Update& u : g.updates)
    text += fmt::format("  {} -> v{} [style=dashed, constraint=false];\n", vertex_of(g, u.value), u.state);
  return text + "}\n";
}

std::string graph_jsonl(const Graph& g) {
  JsonWriter head;
  head.open('{').key("kind").value("graph").key("schema").value("tapedeck.graph/1").key("name").value(g.name.view());
  head.key("inputs").value(g.n_inputs).key("state").value(g.n_state).key("nodes").value(g.node_count());
  head.key("values").value(g.value_count()).key("outputs").value(static_cast<std::int64_t>(g.outputs.size())).close('}');
  std::string text = head.take() + "\n";
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) text += given_line(g, v);
  for (NodeId n = 0; n < g.node_count(); ++n) text += node_line(g, n);
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    JsonWriter out;
    out.open('{').key("kind").value("output").key("name").value(output_name(g, i));
    text += out.key("value").value(g.value_name(g.outputs[i])).close('}').take() + "\n";
  }
  for (const Update& u : g.updates) {
    JsonWriter out;
    out.open('{').key("kind").value("update").key("state").value(g.value_name(u.state));
    text += out.key("value").value(g.value_name(u.value)).close('}').take() + "\n";
  }
  return text;
}

}  // namespace tapedeck
