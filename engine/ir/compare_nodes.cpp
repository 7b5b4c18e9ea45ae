// Compares and hashes the attributes of nodes, and compares the regions that nodes hold.
//
// Attributes go field by field, by the schema of the op. Regions compare as their text would: a value that prints as `_` has
// no name for the comparison, and literals that the text writes out compare by their elements.
//
//       %a: f32[2] = relu(%x)     same region as     %b: f32[2] = relu(%x)     if nothing reads %a and %b: both print `_`
#include <tapedeck/engine/ir/compare_nodes.h>

#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace tapedeck {

// ---- attributes ----

namespace {

bool same_literal(const Literal* a, const Literal* b) {
  if (a == b) return true;
  if (!a || !b || a->type != b->type) return false;
  if (!a->data || !b->data) return !a->data && !b->data && !a->tensor.empty() && a->tensor == b->tensor;
  return a->data == b->data || std::memcmp(a->data.get(), b->data.get(), static_cast<std::size_t>(a->type.bytes())) == 0;
}

}  // namespace

bool same_field(const void* x, const void* y, const Field& field) {
  const auto equal_as = [&](auto sample) {
    using T = decltype(sample);
    return std::memcmp(&field_of<T>(x, field), &field_of<T>(y, field), sizeof(T)) == 0;
  };
  switch (field.kind) {
    case FieldKind::integer:
      return equal_as(std::int64_t{});
    case FieldKind::real:
      return equal_as(double{});
    case FieldKind::boolean:
      return equal_as(bool{});
    case FieldKind::dtype:
      return equal_as(DType{});
    case FieldKind::string:
      return field_of<Name>(x, field) == field_of<Name>(y, field);
    case FieldKind::ints:
      return field_of<Ints>(x, field) == field_of<Ints>(y, field);
    case FieldKind::tensor:
      return equal_as(TensorIndex{});
  }
  return false;
}

bool same_field(const Graph& a, const Node& na, const Graph& b, const Node& nb, const Field& field) {
  if (field.kind == FieldKind::tensor) return same_literal(a.literal(na), b.literal(nb));
  return same_field(a.attributes(na), b.attributes(nb), field);
}

bool same_attributes(const Graph& a, const Node& na, const Graph& b, const Node& nb) {
  if (na.n_regions != nb.n_regions) return false;
  for (std::int32_t i = 0; i < na.n_regions; ++i) {
    const Region &x = a.regions_of(na)[i], &y = b.regions_of(nb)[i];
    if (x != y && !same_region(*x, *y, mentioned_names(a, na))) return false;
  }
  if (na.op->attrs != nb.op->attrs || (na.attrs == kNone) != (nb.attrs == kNone)) return false;
  if (na.attrs == kNone) return true;
  for (const Field& field : fields_of(*na.op))
    if (!same_field(a, na, b, nb, field)) return false;
  return true;
}

// ---- regions ----

namespace {

// Marks the values that a clone's note `of=` names: the text shows their names even if nothing reads them. A note that holds
// the number of a value without a name marks nothing, because the value gets another number when the text is parsed.
void add_repeated(const Graph& graph, std::vector<bool>* shown) {
  std::unordered_set<std::string_view> repeated;
  for (const Node& node : graph.nodes)
    if (!node.origin.of.empty()) repeated.insert(node.origin.of.view());
  if (repeated.empty()) return;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if ((*shown)[v]) continue;
    const Name name = graph.values[v].name;
    (*shown)[v] = !name.empty() && repeated.contains(name.view());
  }
}

// Whether the text form writes the elements of a constant. It does so for a small constant, and for a constant without a name
// in the file. It writes the name of any other constant.
bool written_out(const Literal* literal) {
  return literal && literal->data && (literal->type.numel() <= kMaxInlineConstant || literal->tensor.empty());
}

bool same_text(const Literal* a, const Literal* b) {
  if (written_out(a) != written_out(b)) return false;
  if (written_out(a)) return same_literal(a, b);
  return (a ? a->tensor : Name()) == (b ? b->tensor : Name());
}

bool same_origin(const Origin& a, const Origin& b) {
  return a.phase == b.phase && a.clone == b.clone && a.wish == b.wish && a.region == b.region && a.twin == b.twin &&
         a.of == b.of && a.path == b.path && a.site == b.site;
}

bool same_fields(const Graph& a, const Node& na, const Graph& b, const Node& nb) {
  if (fields_of(*na.op).empty()) return true;
  if (na.attrs == kNone || nb.attrs == kNone) return na.attrs == nb.attrs;
  for (const Field& field : fields_of(*na.op)) {
    const bool tensor = field.kind == FieldKind::tensor;
    if (tensor ? !same_text(a.literal(na), b.literal(nb)) : !same_field(a, na, b, nb, field)) return false;
  }
  return true;
}

bool same_results(const Graph& a, const Node& na, const std::vector<bool>& shown_a, const Graph& b, const Node& nb,
                  const std::vector<bool>& shown_b) {
  if (na.first_output != nb.first_output || na.n_outputs != nb.n_outputs) return false;
  for (ValueId v = na.first_output; v < na.first_output + na.n_outputs; ++v) {
    if (a.values[v].type != b.values[v].type || shown_a[v] != shown_b[v]) return false;
    if (shown_a[v] && a.values[v].name != b.values[v].name) return false;
  }
  return true;
}

bool same_body(const Graph& a, const Graph& b, const MentionedNames& mentioned);

bool same_node(const Graph& a, const Node& na, const std::vector<bool>& shown_a, const Graph& b, const Node& nb,
               const std::vector<bool>& shown_b) {
  const auto equal = [](auto x, auto y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  if (na.op != nb.op || !equal(a.inputs(na), b.inputs(nb)) || !equal(a.after(na), b.after(nb))) return false;
  if (!same_origin(na.origin, nb.origin) || !same_fields(a, na, b, nb)) return false;
  if (!same_results(a, na, shown_a, b, nb, shown_b)) return false;
  const auto x = a.regions_of(na), y = b.regions_of(nb);
  if (x.size() != y.size()) return false;
  for (std::size_t r = 0; r < x.size(); ++r)
    if (x[r] != y[r] && !same_body(*x[r], *y[r], mentioned_names(a, na))) return false;
  return true;
}

bool same_declarations(const Graph& a, const Graph& b) {
  if (a.n_inputs != b.n_inputs || a.n_state != b.n_state) return false;
  for (ValueId v = 0; v < a.n_inputs + a.n_state; ++v) {
    const Value &x = a.values[v], &y = b.values[v];
    if (x.type != y.type || x.role != y.role || x.name != y.name) return false;
  }
  return true;
}

// The name of output i in the `return` line. It is empty if the output has the same name as its value.
Name own_name(const Graph& graph, std::size_t i) {
  const Name name = i < graph.output_names.size() ? graph.output_names[i] : Name();
  return name == graph.values[graph.outputs[i]].name ? Name() : name;
}

bool same_return(const Graph& a, const Graph& b) {
  if (a.outputs != b.outputs) return false;
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (own_name(a, i) != own_name(b, i)) return false;
  const auto same = [](const Update& x, const Update& y) { return x.state == y.state && x.value == y.value; };
  return std::equal(a.updates.begin(), a.updates.end(), b.updates.begin(), b.updates.end(), same);
}

// Recursion through nested regions is at most kMaxNesting deep.
bool same_body(const Graph& a, const Graph& b, const MentionedNames& mentioned) {
  if (a.nodes.size() != b.nodes.size() || a.values.size() != b.values.size()) return false;
  if (!same_declarations(a, b) || !same_return(a, b)) return false;
  const std::vector<bool> shown_a = shown_values(a, mentioned), shown_b = shown_values(b, mentioned);
  for (std::size_t n = 0; n < a.nodes.size(); ++n)
    if (!same_node(a, a.nodes[n], shown_a, b, b.nodes[n], shown_b)) return false;
  return true;
}

}  // namespace

// The words of the text attributes of a node, which may be names of values of its regions: `follows` of a dynamic region has
// "y.shape.0=x@1", in which %y and %x are names.
MentionedNames mentioned_names(const Graph& graph, const Node& node) {
  MentionedNames names;
  if (node.attrs == kNone) return names;
  for (const Field& field : fields_of(*node.op)) {
    if (field.kind != FieldKind::string) continue;
    std::string_view text = field_of<Name>(graph.attributes(node), field).view();
    while (!text.empty()) {
      const std::size_t end = text.find_first_of("=@, ");
      std::string_view word = text.substr(0, end);
      names.emplace(word);
      for (int i = 0; i < 2; ++i) word = word.substr(0, std::min(word.rfind('.'), word.size()));
      names.emplace(word);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
  }
  return names;
}

std::vector<bool> shown_values(const Graph& graph, const MentionedNames& mentioned) {
  std::vector<bool> shown(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (ValueId v : graph.inputs(node)) shown[v] = true;
    for (ValueId v : graph.after(node)) shown[v] = true;
  }
  for (ValueId v : graph.outputs) shown[v] = true;
  for (const Update& u : graph.updates) shown[u.value] = true;
  add_repeated(graph, &shown);
  for (ValueId v = 0; v < graph.value_count() && !mentioned.empty(); ++v)
    if (!shown[v]) shown[v] = mentioned.count(graph.value_name(v)) > 0;
  return shown;
}

bool same_region(const Graph& a, const Graph& b, const MentionedNames& mentioned) {
  return a.name == b.name && same_body(a, b, mentioned);
}

// ---- hashes ----

namespace {

// The FNV-1a hash, but of eight bytes at a time; the last bytes enter one by one.
struct Hash {
  std::uint64_t state = 0xcbf29ce484222325u;
  void word(std::uint64_t w) {
    state = (state ^ w) * 0x100000001b3u;
    state ^= state >> 29;
  }
  void bytes(const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; n >= 8; p += 8, n -= 8) {
      std::uint64_t w;
      std::memcpy(&w, p, 8);
      word(w);
    }
    for (; n > 0; ++p, --n) word(*p);
  }
  void text(Name name) {
    word(name.view().size());
    bytes(name.view().data(), name.view().size());
  }
};

void hash_literal(Hash& h, const Literal* literal) {
  if (!literal) return h.word(0);
  h.word(static_cast<std::uint64_t>(literal->type.dtype));
  h.bytes(literal->type.shape.sizes, static_cast<std::size_t>(literal->type.shape.rank) * sizeof(std::int64_t));
  if (literal->data)
    h.bytes(literal->data.get(), static_cast<std::size_t>(literal->type.bytes()));
  else
    h.text(literal->tensor);
}

void hash_field(Hash& h, const Graph& graph, const Node& node, const Field& field) {
  const void* attrs = graph.attributes(node);
  switch (field.kind) {
    case FieldKind::integer:
      return h.bytes(&field_of<std::int64_t>(attrs, field), sizeof(std::int64_t));
    case FieldKind::real:
      return h.bytes(&field_of<double>(attrs, field), sizeof(double));
    case FieldKind::boolean:
      return h.word(field_of<bool>(attrs, field));
    case FieldKind::dtype:
      return h.word(static_cast<std::uint64_t>(field_of<DType>(attrs, field)));
    case FieldKind::string:
      return h.text(field_of<Name>(attrs, field));
    case FieldKind::tensor:
      return hash_literal(h, graph.literal(node));
    case FieldKind::ints: {
      const Ints& list = field_of<Ints>(attrs, field);
      h.word(static_cast<std::uint64_t>(list.size));
      return h.bytes(list.items, static_cast<std::size_t>(list.size) * sizeof(std::int64_t));
    }
  }
}

}  // namespace

std::uint64_t hash_attributes(const Graph& graph, const Node& node) {
  Hash h;
  if (node.attrs != kNone)
    for (const Field& field : fields_of(*node.op)) hash_field(h, graph, node, field);
  return h.state;
}

// ---- the hash of a region: of everything that same_region() compares, in the order of the functions above ----

namespace {

void hash_type(Hash& h, const Type& type) {
  h.word(static_cast<std::uint64_t>(type.dtype) << 8 | static_cast<std::uint64_t>(type.shape.rank));
  h.bytes(type.shape.sizes, static_cast<std::size_t>(type.shape.rank) * sizeof(std::int64_t));
}

void hash_origin(Hash& h, const Origin& o) {
  h.word(static_cast<std::uint64_t>(o.phase) << 1 | static_cast<std::uint64_t>(o.clone));
  h.word(static_cast<std::uint64_t>(o.wish));
  h.word(static_cast<std::uint64_t>(o.region));
  h.text(o.twin);
  h.text(o.of);
  h.text(o.path);
  h.text(o.site);
}

void hash_fields(Hash& h, const Graph& graph, const Node& node) {
  if (node.attrs == kNone) return;
  for (const Field& field : fields_of(*node.op)) {
    const Literal* literal = field.kind == FieldKind::tensor ? graph.literal(node) : nullptr;
    if (field.kind != FieldKind::tensor || written_out(literal))
      hash_field(h, graph, node, field);
    else
      h.text(literal ? literal->tensor : Name());
  }
}

void hash_declarations(Hash& h, const Graph& graph) {
  h.word(static_cast<std::uint64_t>(graph.n_inputs) << 32 | static_cast<std::uint32_t>(graph.n_state));
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) {
    hash_type(h, graph.values[v].type);
    h.word(static_cast<std::uint64_t>(graph.values[v].role));
    h.text(graph.values[v].name);
  }
}

// Recursion through nested regions is at most kMaxNesting deep.
void hash_body(Hash& h, const Graph& graph) {
  hash_declarations(h, graph);
  const std::vector<bool> shown = shown_values(graph);
  for (const Node& node : graph.nodes) {
    h.word(reinterpret_cast<std::uintptr_t>(node.op));
    for (const ValueId v : graph.inputs(node)) h.word(static_cast<std::uint64_t>(v));
    for (const ValueId v : graph.after(node)) h.word(static_cast<std::uint64_t>(v));
    hash_origin(h, node.origin);
    hash_fields(h, graph, node);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      hash_type(h, graph.values[v].type);
      if (shown[v]) h.text(graph.values[v].name);
    }
    for (const Region& region : graph.regions_of(node)) hash_body(h, *region);
  }
  for (const ValueId v : graph.outputs) h.word(static_cast<std::uint64_t>(v));
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) h.text(own_name(graph, i));
}

}  // namespace

std::uint64_t hash_region(const Graph& graph) {
  Hash h;
  h.text(graph.name);
  hash_body(h, graph);
  return h.state;
}

}  // namespace tapedeck
