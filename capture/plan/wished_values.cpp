// Finds the values that wishes name. A pattern is parsed once, into the one thing that it looks at, and asked for each value.
#include <tapedeck/capture/plan/wished_values.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/trait_names.h>
#include <tapedeck/engine/text/glob.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

namespace tapedeck {

namespace {

enum class Looks : std::uint8_t { name, module, op, trait, region, note };
constexpr std::string_view kKinds[] = {"name", "module", "op", "trait", "region", "note"};

struct Pattern {
  Looks looks = Looks::name;
  std::string text;          // the pattern of a name, a module path or the name of an op
  std::uint32_t traits = 0;  // of a trait
  std::int32_t region = kNone;
  NodeWish note = NodeWish::none;
};

[[noreturn]] void refuse(const Wish& wish, const std::string& fault) {
  throw UsageError(fmt::format("{}: {}", wish_text(wish), fault));
}

std::uint32_t trait_of(const Wish& wish, std::string_view name) {
  std::vector<std::string_view> names;
  for (const TraitName& t : trait_names()) {
    if (name == t.name) return t.trait;
    names.emplace_back(t.name);
  }
  refuse(wish, fmt::format("there is no trait '{}'{}", name, did_you_mean(name, names)));
}

std::int32_t region_of(const Wish& wish, std::string_view text) {
  std::int32_t number = kNone;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    refuse(wish, fmt::format("'{}' is no number of a checkpoint region", text));
  return number;
}

NodeWish note_of(const Wish& wish, std::string_view word) {
  for (NodeWish note : {NodeWish::keep, NodeWish::recompute})
    if (word == wish_name(note)) return note;
  refuse(wish, fmt::format("'{}' is neither keep nor recompute", word));
}

Looks kind_of(const Wish& wish, std::string_view word) {
  const auto known = std::find(std::begin(kKinds) + 1, std::end(kKinds), word);
  if (known != std::end(kKinds)) return static_cast<Looks>(known - std::begin(kKinds));
  const std::vector<std::string_view> kinds(std::begin(kKinds) + 1, std::end(kKinds));
  const std::string near = did_you_mean(word, kinds);
  refuse(wish, fmt::format("'{}:' is none of module:, op:, trait:, region: and note:{}", word,
                           near.empty() ? "; in the name of a value, write `?` for a colon" : near));
}

Pattern parse(const Wish& wish) {
  std::string_view text = wish.pattern;
  Pattern pattern;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    pattern.looks = kind_of(wish, text.substr(0, colon));
    text.remove_prefix(colon + 1);
  } else if (text.starts_with('%')) {
    text.remove_prefix(1);  // as the text of a graph has it
  }
  if (text.empty()) refuse(wish, "the pattern names nothing");
  if (pattern.looks == Looks::trait) pattern.traits = trait_of(wish, text);
  if (pattern.looks == Looks::region) pattern.region = region_of(wish, text);
  if (pattern.looks == Looks::note) pattern.note = note_of(wish, text);
  pattern.text = text;
  return pattern;
}

// The path itself, or the path of a module around it: `enc.0.fc1` lies in `enc.0` and in `enc`.
bool lies_in(std::string_view path, std::string_view pattern) {
  if (path.empty()) return false;
  for (std::size_t end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1))
    if (matches_glob(pattern, path.substr(0, end))) return true;
  return matches_glob(pattern, path);
}

bool names_node(const Pattern& pattern, const Node& node) {
  switch (pattern.looks) {
    case Looks::module:
      return lies_in(node.origin.path.view(), pattern.text);
    case Looks::op:
      return matches_glob(pattern.text, node.op->name);
    case Looks::trait:
      return node.op->is(pattern.traits);
    case Looks::region:
      return node.origin.region == pattern.region;
    case Looks::note:
      return node.origin.wish == pattern.note;
    default:
      return false;
  }
}

bool names_value(const Pattern& pattern, const Graph& graph, ValueId v) {
  const Value& value = graph.values[v];
  if (pattern.looks == Looks::name) return !value.name.empty() && matches_glob(pattern.text, value.name.view());
  return value.node != kNone && names_node(pattern, graph.nodes[value.node]);
}

// The words of the graph that the pattern could have meant.
std::set<std::string> words_of(const Graph& graph, Looks looks) {
  std::set<std::string> words;
  if (looks == Looks::name)
    for (const Value& v : graph.values)
      if (!v.name.empty()) words.insert(v.name.str());
  for (const Node& node : graph.nodes) {
    if (looks == Looks::op) words.insert(std::string(node.op->name));
    if (looks == Looks::region && node.origin.region >= 0) words.insert(std::to_string(node.origin.region));
    if (looks != Looks::module) continue;
    const std::string_view path = node.origin.path.view();
    for (std::size_t end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1))
      words.insert(std::string(path.substr(0, end)));
    if (!path.empty()) words.insert(std::string(path));
  }
  return words;
}

Wish wish_of_program(NodeWish note) {
  return {note == NodeWish::keep ? WishKind::keep : WishKind::recompute, fmt::format("note:{}", wish_name(note))};
}

constexpr const char* kNouns[] = {
    "no value has such a name", "no module has such a path",          "no node has such an op",
    "no node has this trait",   "there is no such checkpoint region", "the program marks no node so"};

}  // namespace

bool is_of_program(const Wish& wish) {
  return wish == wish_of_program(NodeWish::keep) || wish == wish_of_program(NodeWish::recompute);
}

std::vector<Wish> with_program_wishes(const Graph& graph, const std::vector<Wish>& wishes) {
  std::vector<Wish> all;
  for (NodeWish note : {NodeWish::keep, NodeWish::recompute}) {
    const bool marked =
        std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.origin.wish == note; });
    const Wish wish = wish_of_program(note);
    if (marked && std::find(wishes.begin(), wishes.end(), wish) == wishes.end()) all.push_back(wish);
  }
  all.insert(all.end(), wishes.begin(), wishes.end());
  return all;
}

Graph without_marks(Graph graph) {
  for (Node& node : graph.nodes) node.origin.wish = NodeWish::none;
  return graph;
}

std::string wish_text(const Wish& wish) {
  if (is_of_program(wish)) return fmt::format("[{}] in the program", wish.pattern.substr(wish.pattern.find(':') + 1));
  return fmt::format("--{} {}", wish.kind == WishKind::keep ? "keep" : "recompute", wish.pattern);
}

void check_wishes(const std::vector<Wish>& wishes) {
  for (const Wish& wish : wishes) parse(wish);
}

WishedValues find_wished(const Graph& graph, const std::vector<Wish>& wishes) {
  WishedValues found;
  found.wish_of.assign(graph.values.size(), kNone);
  found.named.assign(wishes.size(), 0);
  for (std::size_t w = 0; w < wishes.size(); ++w) {
    const Pattern pattern = parse(wishes[w]);
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      if (!names_value(pattern, graph, v)) continue;
      found.wish_of[v] = static_cast<std::int32_t>(w);
      ++found.named[w];
    }
  }
  return found;
}

std::string describe_unmatched(const Graph& graph, const Wish& wish) {
  const Pattern pattern = parse(wish);
  const std::set<std::string> words = words_of(graph, pattern.looks);
  const std::vector<std::string_view> views(words.begin(), words.end());
  return fmt::format("{}: {}{}", wish_text(wish), kNouns[static_cast<int>(pattern.looks)], did_you_mean(pattern.text, views));
}

}  // namespace tapedeck
