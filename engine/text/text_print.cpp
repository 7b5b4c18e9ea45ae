// Prints a graph. The text depends on the graph and the options only. engine/README.md has the grammar and examples.
//
//       header      graph g(%x: f32[2]) state(%w: f32[2]) {
//       nodes         %h: f32[2] = mul(%x, %w)                      [path="fc1"]       notes begin in one column
//       return        return %h
#include <tapedeck/engine/text/shown_name.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/engine/ir/compare_nodes.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/literal_text.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::size_t kNotesColumn = 53;  // notes begin at this column, or one blank after a longer line
constexpr std::size_t kMaxColumn = 120;   // the lists of the header, `return` and `update` wrap at this column

// ---- names ----

// Quotes a name that consists of digits only, because a number stands for a value without a name.
void append_value_name(std::string& out, const Graph& graph, ValueId v) {
  if (v < 0 || v >= graph.value_count()) {  // only messages about broken graphs can get here
    out.append("?").append(std::to_string(v));
    return;
  }
  const std::string_view name = graph.values[v].name.view();
  if (name.empty())
    out += std::to_string(v);
  else if (is_plain_name(name) && !is_number_name(name))
    out += name;
  else
    out += quoted(name);
}

void append_ref(std::string& out, const Graph& graph, ValueId v) {
  out += '%';
  append_value_name(out, graph, v);
}

// The original of a value without a name that is computed again; empty for other values.
Name repeated_by(const Graph& graph, ValueId v) {
  if (v < 0 || v >= graph.value_count() || !graph.values[v].name.empty() || graph.values[v].node == kNone) return {};
  const Node& maker = graph.nodes[graph.values[v].node];
  return v == maker.first_output ? maker.origin.of : Name();
}

using AppendRef = void (*)(std::string& out, const Graph& graph, ValueId v);

// As messages show it (shown_name.h).
void append_shown_ref(std::string& out, const Graph& graph, ValueId v) {
  if (const Name of = repeated_by(graph, v); !of.empty())
    out.append("%").append(of.view()).append(" again");
  else
    append_ref(out, graph, v);
}

void append_refs(std::string& out, const Graph& graph, std::span<const ValueId> refs, AppendRef append = append_ref) {
  for (std::size_t i = 0; i < refs.size(); ++i) {
    if (i > 0) out += ", ";
    append(out, graph, refs[i]);
  }
}

// Appends the value of `of=` or `twin=`. The value may no longer exist. A number stands for a value without a name.
void append_note_ref(std::string& out, Name name) {
  out += '%';
  if (is_plain_name(name.view()))
    out += name.view();
  else
    out += quoted(name.view());
}

void append_word(std::string& out, std::string_view name) {
  if (is_plain_name(name) && name != "update")
    out += name;
  else
    out += quoted(name);
}

void append_type(std::string& out, const Type& type) {
  out.append(dtype_name(type.dtype)).append("[");
  for (int i = 0; i < type.shape.rank; ++i) {
    if (i > 0) out += ',';
    out += std::to_string(type.shape[i]);
  }
  out += ']';
}

// ---- attributes ----

void append_elements(std::string& out, const Literal& literal) {
  const auto* bytes = static_cast<const unsigned char*>(literal.data.get());
  const std::size_t step = dtype_size(literal.type.dtype);
  out += '[';
  for (std::int64_t i = 0, n = literal.type.numel(); i < n; ++i) {
    if (i > 0) out += ',';
    append_element(out, literal.type.dtype, bytes + static_cast<std::size_t>(i) * step);
  }
  out += ']';
}

// Writes the data of a constant. Data without a name in the file is written out at any size, because it stands nowhere else.
void append_literal(std::string& out, const Field& field, const Literal* literal, std::int64_t max_inline) {
  const bool has_data = literal && literal->data;
  if (has_data && (literal->type.numel() <= max_inline || literal->tensor.empty())) {
    out.append(field.name).append("=");
    append_elements(out, *literal);
  } else if (literal && !literal->tensor.empty()) {
    out.append("tensor=").append(quoted(literal->tensor.view()));
  } else {
    out += "abstract=true";
  }
}

void append_field(std::string& out, const void* attrs, const Field& field) {
  out.append(field.name).append("=");
  switch (field.kind) {
    case FieldKind::integer:
      out += std::to_string(field_of<std::int64_t>(attrs, field));
      return;
    case FieldKind::real:
      append_real(out, field_of<double>(attrs, field));
      return;
    case FieldKind::boolean:
      out += field_of<bool>(attrs, field) ? "true" : "false";
      return;
    case FieldKind::string:
      out += quoted(field_of<Name>(attrs, field).view());
      return;
    case FieldKind::dtype:
      out += dtype_name(field_of<DType>(attrs, field));
      return;
    case FieldKind::tensor:
      return;  // append_literal prints it
    case FieldKind::ints: {
      const Ints& list = field_of<Ints>(attrs, field);
      out += '[';
      for (int i = 0; i < list.size; ++i) {
        if (i > 0) out += ',';
        out += std::to_string(list[i]);
      }
      out += ']';
      return;
    }
  }
}

bool is_default(const Op& op, const void* attributes, const Field& field) {
  std::string stated, usual;
  append_field(stated, attributes, field);
  append_field(usual, op.attrs->defaults, field);
  return stated == usual;
}

void append_attributes(std::string& out, const Graph& graph, const Node& node, std::int64_t max_inline) {
  if (node.attrs == kNone || fields_of(*node.op).empty()) return;
  bool first = true;
  for (const Field& field : fields_of(*node.op)) {
    if (field.added_later && is_default(*node.op, graph.attributes(node), field)) continue;
    out += std::exchange(first, false) ? " {" : ", ";
    if (field.kind == FieldKind::tensor)
      append_literal(out, field, graph.literal(node), max_inline);
    else
      append_field(out, graph.attributes(node), field);
  }
  if (!first) out += '}';
}

// ---- nodes ----

// Appends one node. `shown` tells for each value whether the text has its name or number (see shown_values); a null `shown`
// means that all values are shown.
void append_node(std::string& out, const Graph& graph, const Node& node, const std::vector<bool>* shown,
                 std::int64_t max_inline, AppendRef append = append_ref) {
  for (std::int32_t i = 0; i < node.n_outputs; ++i) {
    const ValueId v = node.first_output + i;
    if (i > 0) out += ", ";
    if (shown && !(*shown)[v])
      out += '_';
    else
      append(out, graph, v);
    if (v < 0 || v >= graph.value_count()) continue;
    out += ": ";
    append_type(out, graph.values[v].type);
  }
  if (node.n_outputs > 0) out += " = ";
  out.append(node.op->name).append("(");
  append_refs(out, graph, graph.inputs(node), append);
  out += ')';
  append_attributes(out, graph, node, max_inline);
}

// Builds the list of notes "a=1, b, c=2".
struct Notes {
  std::string text;
  void add_word(std::string_view word) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  std::string& add(std::string_view key) {
    add_word(key);
    return text += '=';
  }
};

std::string node_notes(const Graph& graph, NodeId id, const PrintOptions& options) {
  const Node& node = graph.nodes[id];
  const Origin& origin = node.origin;
  Notes notes;
  if (origin.phase != Phase::forward) notes.add("phase") += phase_name(origin.phase);
  if (!origin.of.empty()) append_note_ref(notes.add("of"), origin.of);
  // The note `of` already implies a clone. `clone` is printed only if `of` does not tell it.
  if (origin.clone == origin.of.empty()) notes.add("clone") += origin.clone ? "true" : "false";
  if (!origin.twin.empty()) append_note_ref(notes.add("twin"), origin.twin);
  if (origin.wish != NodeWish::none) notes.add_word(wish_name(origin.wish));
  if (origin.region != kNone) notes.add("region") += std::to_string(origin.region);
  if (!origin.path.empty()) notes.add("path") += quoted(origin.path.view());
  if (!origin.site.empty()) notes.add("site") += quoted(origin.site.view());
  if (node.n_after > 0) {
    append_refs(notes.add("after") += '[', graph, graph.after(node));
    notes.text += ']';
  }
  if (!options.extra_notes) return notes.text;
  const std::string extra = options.extra_notes(id);
  if (!extra.empty() && !notes.text.empty()) notes.text += ", ";
  return notes.text += extra;
}

// ---- header, return, update ----

// Appends items with ", " between them. Wraps a line before it passes kMaxColumn.
class List {
 public:
  explicit List(std::string& out) : out_(out) {}
  void add(const std::string& item) {
    if (!first_) out_ += ',';
    const std::size_t newline = out_.rfind('\n');
    const std::size_t column = newline == std::string::npos ? out_.size() : out_.size() - newline - 1;
    if (!first_ && column + 1 + item.size() > kMaxColumn)
      out_ += "\n    ";
    else if (!first_)
      out_ += ' ';
    out_ += item;
    first_ = false;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_declarations(std::string& out, const Graph& graph, ValueId first, std::int32_t n, Role usual,
                         const std::function<std::string(ValueId)>& extra_notes = {}) {
  List list(out += '(');
  for (ValueId v = first; v < first + n; ++v) {
    std::string item;
    append_ref(item, graph, v);
    append_type(item += ": ", graph.values[v].type);
    std::string notes = graph.values[v].role != usual ? std::string("role=") + role_name(graph.values[v].role) : std::string();
    const std::string extra = extra_notes ? extra_notes(v) : std::string();
    if (!extra.empty() && !notes.empty()) notes += ", ";
    notes += extra;
    if (!notes.empty()) item.append(" [").append(notes).append("]");
    list.add(item);
  }
  out += ')';
}

void append_return(std::string& out, const Graph& graph, std::size_t indent) {
  out.append(indent, ' ').append("return");
  if (graph.outputs.empty()) return;
  List list(out += ' ');
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId v = graph.outputs[i];
    const Name name = i < graph.output_names.size() ? graph.output_names[i] : Name();
    std::string item;
    if (!name.empty() && name != graph.values[v].name) {
      append_word(item, name.view());
      item += '=';
    }
    append_ref(item, graph, v);
    list.add(item);
  }
}

void append_updates(std::string& out, const Graph& graph) {
  if (graph.updates.empty()) return;
  List list(out += "\n  update ");
  for (const Update& u : graph.updates) {
    std::string item;
    append_ref(item, graph, u.state);
    append_ref(item += " = ", graph, u.value);
    list.add(item);
  }
}

// Prints the text between the braces, indented by `indent` blanks.
void append_body(std::string& out, const Graph& graph, const PrintOptions& options, std::size_t indent,
                 const MentionedNames& mentioned);

void append_region(std::string& out, const Graph& region, const PrintOptions& options, std::size_t indent,
                   const MentionedNames& mentioned) {
  PrintOptions inner = options;
  inner.extra_notes = {};  // extra notes belong to nodes of the outer graph
  append_declarations(out += ' ', region, 0, region.n_inputs, Role::input);
  out += " {\n";
  append_body(out, region, inner, indent + 2, mentioned);
  out.append(1, '\n').append(indent, ' ').append("}");
}

void append_body(std::string& out, const Graph& graph, const PrintOptions& options, std::size_t indent,
                 const MentionedNames& mentioned) {
  const std::vector<bool> shown = shown_values(graph, mentioned);
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const std::size_t line = out.size();
    append_node(out.append(indent, ' '), graph, graph.nodes[id], &shown, options.max_inline_constant);
    const std::string notes = options.notes ? node_notes(graph, id, options) : std::string();
    if (!notes.empty()) {
      const std::size_t length = out.size() - line;
      out.append(length < kNotesColumn ? kNotesColumn - length : 1, ' ').append("[").append(notes).append("]");
    }
    const Node& node = graph.nodes[id];
    if (node.n_regions > 0) {
      const MentionedNames names = mentioned_names(graph, node);
      for (const Region& region : graph.regions_of(node)) append_region(out, *region, options, indent, names);
    }
    out += '\n';
  }
  append_return(out, graph, indent);
  append_updates(out, graph);
}

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out;
  out.reserve(64 * graph.nodes.size() + 64 * graph.values.size() + 256);
  out += "graph ";
  if (is_plain_name(graph.name.view()))
    out += graph.name.view();
  else
    out += quoted(graph.name.view());
  append_declarations(out, graph, 0, graph.n_inputs, Role::input, options.input_notes);
  if (graph.n_state > 0) append_declarations(out += " state", graph, graph.n_inputs, graph.n_state, Role::parameter);
  out += " {\n";
  append_body(out, graph, options, 2, {});
  out += "\n}\n";
  return out;
}

// ---- names and nodes in messages ----

std::string Graph::value_name(ValueId v) const {
  std::string out;
  append_value_name(out, *this, v);
  return out;
}

std::string shown_name(const Graph& graph, ValueId v) {
  std::string out;
  append_shown_ref(out, graph, v);
  return out;
}

std::string Graph::node_text(NodeId n) const {
  std::string out;
  const Literal* constant = literal(nodes[n]);
  if (!constant || !constant->data || constant->type.numel() <= kMaxInlineConstant) {
    append_node(out, *this, nodes[n], nullptr, kMaxInlineConstant, append_shown_ref);
    return out;
  }
  // A message must not show a long list of numbers. So the node is printed without its constant, followed by the number of
  // elements.
  Node bare = nodes[n];
  bare.attrs = kNone;
  append_node(out, *this, bare, nullptr, 0, append_shown_ref);
  return out.append(" {").append(std::to_string(constant->type.numel())).append(" elements}");
}

}  // namespace tapedeck
