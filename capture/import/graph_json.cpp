// Reads in four stages: the nodes as they are listed, the order in which they run, the links as pairs of places in that order,
// and the graph.
#include <tapedeck/capture/import/graph_json.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/import/foreign_values.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/engine/ir/unique_names.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace tapedeck {

namespace {

struct ForeignNode {
  std::string id;         // as text; a string keeps its quotes, so that 5 and "5" are two
  std::int64_t rank = 0;  // the id, if it is an integer
  std::string name;
  std::int64_t bytes = 0;
  double us = 0;
  bool backward = false;
};

// By places in the order of execution.
struct Link {
  std::int32_t to = 0, from = 0;
  std::uint32_t line = 0;
  bool operator<(const Link& o) const { return std::tie(to, from, line) < std::tie(o.to, o.from, o.line); }
};

class NodeLinkReader {
 public:
  NodeLinkReader(const JsonDocument& document, const std::string& file, ImportedResults results)
      : root_(document.root()), file_(file), results_(results) {}

  Graph read() {
    if (root_.kind() != JsonKind::object) fail(root_, fmt::format("{} where an object should be", shown(root_)));
    if (!flag("directed", true))
      fail(*root_.find("directed"), "the graph is not directed, so nothing says which node reads which");
    read_nodes();
    find_order();
    read_links();
    return build();
  }

 private:
  [[noreturn]] void fail(JsonValue at, const std::string& reason) const { refuse(file_, at.line(), reason); }

  JsonValue member(const char* key, JsonKind kind, const char* kind_name) const {
    const std::optional<JsonValue> found = root_.find(key);
    if (!found) fail(root_, fmt::format("the file has no \"{}\"", key));
    if (found->kind() != kind) fail(*found, fmt::format("\"{}\" is {} and not {}", key, shown(*found), kind_name));
    return *found;
  }

  bool flag(const char* key, bool otherwise) const {
    const std::optional<JsonValue> found = root_.find(key);
    if (!found) return otherwise;
    if (found->kind() != JsonKind::boolean) fail(*found, fmt::format("\"{}\" is {} and not true or false", key, shown(*found)));
    return found->as_bool();
  }

  // A member of the object "graph", which may be missing.
  std::optional<JsonValue> note(const char* key) const {
    const std::optional<JsonValue> notes = root_.find("graph");
    if (!notes || notes->kind() != JsonKind::object) return std::nullopt;
    return notes->find(key);
  }

  static std::optional<JsonValue> either(JsonValue object, const char* one, const char* other) {
    const std::optional<JsonValue> found = object.find(one);
    return found ? found : object.find(other);
  }

  std::string id_of(JsonValue value, const std::string& whose) const {
    if (value.kind() != JsonKind::integer && value.kind() != JsonKind::string)
      fail(value, fmt::format("{} is {}; an id is an integer or a string", whose, shown(value)));
    return value.kind() == JsonKind::integer ? fmt::format("{}", value.as_integer()) : fmt::format("\"{}\"", value.as_string());
  }

  std::string shown_node(const ForeignNode& node) const {
    const std::string id = node.id.front() == '"' ? shown(std::string_view(node.id).substr(1, node.id.size() - 2)) : node.id;
    return node.name.empty() ? "node " + id : fmt::format("node {} ({})", id, shown(node.name));
  }

  // ---- nodes ----

  void read_nodes() {
    const JsonValue list = member("nodes", JsonKind::array, "an array");
    for (const JsonValue item : list.items()) {
      stop_if_interrupted();
      if (item.kind() != JsonKind::object)
        fail(item, fmt::format("node {} of the list is {} and not an object", nodes_.size(), shown(item)));
      ForeignNode node = read_node(item);
      add_bytes(item, node);
      if (!places_.emplace(node.id, static_cast<std::int32_t>(nodes_.size())).second)
        fail(item, fmt::format("{}: its id appears twice", shown_node(node)));
      nodes_.push_back(std::move(node));
    }
    if (nodes_.empty()) fail(list, "the graph has no nodes");
  }

  ForeignNode read_node(JsonValue item) {
    ForeignNode node;
    const std::optional<JsonValue> id = item.find("id"), name = item.find("name");
    const std::optional<JsonValue> by = id ? id : name;
    if (!by) fail(item, fmt::format("node {} of the list has neither \"id\" nor \"name\"", nodes_.size()));
    node.id = id_of(*by, id ? "\"id\"" : "\"name\"");
    if (by->kind() == JsonKind::integer) node.rank = by->as_integer();
    has_ranks_ = has_ranks_ && id && id->kind() == JsonKind::integer;
    if (name && name->kind() == JsonKind::string) node.name = name->as_string();
    node.bytes = amount(item, node, "cost_ram", "out_cost", bytes_in, "a whole number of bytes from 0 to 2^46");
    node.us = amount(item, node, "cost_cpu", "duration", microseconds_in, "a number of microseconds from 0 to 1e15");
    if (const std::optional<JsonValue> backward = item.find("backward")) {
      if (backward->kind() != JsonKind::boolean)
        fail(*backward, fmt::format("{}: \"backward\" is {} and not true or false", shown_node(node), shown(*backward)));
      node.backward = backward->as_bool();
    }
    return node;
  }

  template <class Number>
  Number amount(JsonValue item, const ForeignNode& node, const char* key, const char* other,
                std::optional<Number> (*read)(JsonValue), const char* wanted) const {
    const std::optional<JsonValue> found = either(item, key, other);
    if (!found) fail(item, fmt::format("{} has neither \"{}\" nor \"{}\"", shown_node(node), key, other));
    const std::optional<Number> number = found->kind() == JsonKind::string ? std::nullopt : read(*found);
    if (!number)
      fail(*found, fmt::format("{}: \"{}\" is {}; it must be {}", shown_node(node), item.find(key) ? key : other, shown(*found),
                               wanted));
    return *number;
  }

  void add_bytes(JsonValue at, const ForeignNode& node) {
    total_bytes_ += node.bytes;
    if (total_bytes_ > kMostGraphBytes)
      fail(at, fmt::format("{}: the nodes up to here hold more than 2^60 bytes", shown_node(node)));
  }

  std::int32_t node_named(JsonValue id, const std::string& whose) const {
    const auto found = places_.find(id_of(id, whose));
    if (found == places_.end()) fail(id, fmt::format("{} is {}, and no node has this id", whose, shown(id)));
    return found->second;
  }

  // ---- order ----

  // Fills order_, the nodes by place, and turns the numbers in places_ into places.
  void find_order() {
    const std::optional<JsonValue> given = note("order");
    if (given && given->kind() == JsonKind::string)
      take_order_in(*given);
    else if (given)
      take_order(*given);
    else
      order_by_id();
    std::vector<std::int32_t> place(nodes_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) place[static_cast<std::size_t>(order_[k])] = static_cast<std::int32_t>(k);
    for (auto& entry : places_) entry.second = place[static_cast<std::size_t>(entry.second)];
  }

  void order_by_id() {
    order_.resize(nodes_.size());
    std::iota(order_.begin(), order_.end(), 0);
    if (has_ranks_)
      std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
        return nodes_[static_cast<std::size_t>(a)].rank < nodes_[static_cast<std::size_t>(b)].rank;
      });
  }

  // A list that stands in a string, as a program writes an attribute that it cannot express.
  void take_order_in(JsonValue text) {
    std::optional<JsonDocument> list;
    try {
      list.emplace(text.as_string());
    } catch (const JsonError& e) {
      fail(text, fmt::format("\"order\" is a string that holds no list: {}", e.what()));
    }
    take_order(list->root(), &text);
  }

  // `holder` is the string that has the list, for the lines in messages.
  void take_order(JsonValue list, const JsonValue* holder = nullptr) {
    const JsonValue& at = holder ? *holder : list;
    if (list.kind() != JsonKind::array) fail(at, fmt::format("\"order\" is {} and not a list of ids", shown(list)));
    std::vector<char> seen(nodes_.size(), 0);
    for (const JsonValue id : list.items()) {
      const std::int32_t node = node_in_order(id, at);
      if (seen[static_cast<std::size_t>(node)]) fail(at, fmt::format("\"order\" has id {} twice", shown(id)));
      seen[static_cast<std::size_t>(node)] = 1;
      order_.push_back(node);
    }
    const auto missing = std::find(seen.begin(), seen.end(), 0);
    if (missing != seen.end())
      fail(at, fmt::format("\"order\" lacks {}", shown_node(nodes_[static_cast<std::size_t>(missing - seen.begin())])));
  }

  std::int32_t node_in_order(JsonValue id, JsonValue at) const {
    if (id.kind() != JsonKind::integer && id.kind() != JsonKind::string)
      fail(at, fmt::format("\"order\" has {}; an id is an integer or a string", shown(id)));
    const auto found = places_.find(id_of(id, "an id"));
    if (found == places_.end()) fail(at, fmt::format("\"order\" has {}, and no node has this id", shown(id)));
    return found->second;
  }

  // ---- links ----

  void read_links() {
    const JsonValue list = member(root_.find("edges") ? "edges" : "links", JsonKind::array, "an array");
    std::size_t index = 0;
    for (const JsonValue item : list.items()) {
      stop_if_interrupted();
      links_.push_back(read_link(item, fmt::format("link {}", index++)));
    }
    std::sort(links_.begin(), links_.end());
    const auto same = [](const Link& a, const Link& b) { return a.to == b.to && a.from == b.from; };
    const auto twice = std::adjacent_find(links_.begin(), links_.end(), same);
    if (twice == links_.end()) return;
    if (!flag("multigraph", false))
      refuse(file_, twice[1].line,
             fmt::format("the link from {} to {} appears twice", shown_node(at(twice->from)), shown_node(at(twice->to))));
    links_.erase(std::unique(links_.begin(), links_.end(), same), links_.end());
  }

  Link read_link(JsonValue item, const std::string& name) const {
    if (item.kind() != JsonKind::object) fail(item, fmt::format("{} is {} and not an object", name, shown(item)));
    const std::optional<JsonValue> from = either(item, "source", "0"), to = either(item, "target", "1");
    if (!from || !to) fail(item, fmt::format("{} lacks \"source\" and \"target\", or \"0\" and \"1\"", name));
    const Link link = {node_named(*to, name + ": its target"), node_named(*from, name + ": its source"), item.line()};
    if (link.from == link.to) fail(item, fmt::format("{}: {} reads its own result", name, shown_node(at(link.to))));
    if (link.from > link.to)
      fail(item, fmt::format("{}: {} reads the result of {}, which runs after it: there is a cycle, or the order is wrong",
                             name, shown_node(at(link.to)), shown_node(at(link.from))));
    return link;
  }

  const ForeignNode& at(std::int32_t place) const {
    return nodes_[static_cast<std::size_t>(order_[static_cast<std::size_t>(place)])];
  }

  // ---- the graph ----

  // No node has more than one result, so the value of a node is its place.
  Graph build() const {
    Graph graph;
    graph.name = graph_name();
    UniqueNames names;
    std::vector<char> is_read(nodes_.size(), 0);
    std::vector<ValueId> operands;
    auto link = links_.begin();
    for (std::int32_t place = 0; place < static_cast<std::int32_t>(order_.size()); ++place) {
      const ForeignNode& node = at(place);
      operands.clear();
      for (; link != links_.end() && link->to == place; ++link) {
        operands.push_back(link->from);
        is_read[static_cast<std::size_t>(link->from)] = 1;
      }
      Origin origin;
      origin.phase = node.backward ? Phase::backward : Phase::forward;
      add_opaque(&graph, operands, {&node.bytes, 1}, node.us, origin);
      graph.values.back().name = names.unique(value_name(node));
    }
    std::vector<ValueId> results;
    for (ValueId v = 0; v < graph.value_count(); ++v)
      if (!is_read[static_cast<std::size_t>(v)]) results.push_back(v);
    set_results(&graph, results, results_, names.unique("end"));
    verify(graph);
    return graph;
  }

  std::string graph_name() const {
    const std::optional<JsonValue> name = note("name");
    if (name && name->kind() == JsonKind::string && name->size() > 0) return std::string(name->as_string());
    return name_from_path(file_);
  }

  // A name of digits only would have to be quoted wherever it is typed.
  static std::string value_name(const ForeignNode& node) {
    if (!node.name.empty()) return node.name;
    if (node.id.front() != '"') return "n" + node.id;
    return node.id.size() > 2 ? node.id.substr(1, node.id.size() - 2) : "n";
  }

  JsonValue root_;
  const std::string& file_;
  ImportedResults results_;
  std::vector<ForeignNode> nodes_;                        // as listed
  std::unordered_map<std::string, std::int32_t> places_;  // by id: first the index in nodes_, then the place in the order
  std::vector<std::int32_t> order_;                       // indices in nodes_
  std::vector<Link> links_;
  std::int64_t total_bytes_ = 0;
  bool has_ranks_ = true;  // every node has an integer under "id"
};

}  // namespace

Graph import_graph_json(std::string_view text, const std::string& file, ImportedResults results) {
  try {
    const JsonDocument document(text);
    return NodeLinkReader(document, file, results).read();
  } catch (const JsonError& e) {
    throw ParseError(fmt::format("{}: error: {}", file, e.what()));
  }
}

}  // namespace tapedeck
