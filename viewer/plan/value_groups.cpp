// Finds the groups of a graph; see value_groups.h. A path is cut to its first levels; every distinct beginning is a candidate
// with its bytes, and candidates become groups in the order in which the program reaches them.
#include <tapedeck/viewer/plan/value_groups.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr const char* kNames[kColourByCount] = {"role", "module", "op"};

// The first `depth` levels of a path: ("stage1.0.conv1", 2) -> "stage1.0".
std::string_view beginning(std::string_view path, int depth) {
  std::size_t end = 0;
  for (int level = 0; level < depth; ++level) {
    end = path.find('.', end == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return path;
  }
  return path.substr(0, end);
}

// Where the number at the end begins: 6 in "block.12", the length of the text if there is none.
std::size_t number_at_end(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 && text.size() - begin < 6) --begin;
  return begin;
}

int number_of(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// A text with the bytes that its values take, and the group that it is part of.
struct Candidate {
  std::string text;
  std::int64_t bytes = 0;
  std::string group;
};

// The bytes of what a node makes. A view mostly has no bytes of its own.
std::int64_t made_bytes(const Graph& graph, const Node& node) {
  if (node.op->view != nullptr) return 0;
  std::int64_t bytes = 0;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) bytes += graph.values[at(v)].type.bytes();
  return bytes;
}

// Sums up what the nodes make by a text of each node, in the order in which the texts are met first. An empty text is left out.
template <class TextOf>
std::vector<Candidate> candidates(const std::vector<const Graph*>& graphs, TextOf&& text_of) {
  std::vector<Candidate> found;
  std::unordered_map<std::string_view, std::size_t> place;
  for (const Graph* graph : graphs)
    for (const Node& node : graph->nodes) {
      const std::string_view text = text_of(node);
      if (text.empty()) continue;
      const auto [entry, is_new] = place.emplace(text, found.size());
      if (is_new) found.push_back({std::string(text), 0, std::string(text)});
      found[entry->second].bytes += made_bytes(*graph, node);
    }
  return found;
}

// The share of the bytes that the largest candidate has.
double largest_share(const std::vector<Candidate>& candidates) {
  std::int64_t largest = 0, all = 0;
  for (const Candidate& c : candidates) {
    largest = std::max(largest, c.bytes);
    all += c.bytes;
  }
  return all == 0 ? 0 : static_cast<double>(largest) / static_cast<double>(all);
}

std::size_t count_groups(const std::vector<Candidate>& candidates) {
  std::vector<std::string_view> groups;
  for (const Candidate& c : candidates) groups.push_back(c.group);
  std::sort(groups.begin(), groups.end());
  return static_cast<std::size_t>(std::unique(groups.begin(), groups.end()) - groups.begin());
}

// Puts numbered neighbours together, `by` at a time: "block.0" and "block.1" are "block.0-1".
void join_numbered(std::vector<Candidate>* candidates, int by) {
  std::unordered_map<std::string, int> last;  // by the text before the number: the highest number
  for (const Candidate& c : *candidates) {
    const std::size_t digits = number_at_end(c.text);
    if (digits == c.text.size()) continue;
    int& highest = last[c.text.substr(0, digits)];
    highest = std::max(highest, number_of(std::string_view(c.text).substr(digits)));
  }
  for (Candidate& c : *candidates) {
    const std::size_t digits = number_at_end(c.text);
    if (digits == c.text.size()) continue;
    const std::string before = c.text.substr(0, digits);
    const int first = number_of(std::string_view(c.text).substr(digits)) / by * by,
              end = std::min(first + by - 1, last[before]);
    c.group = before + std::to_string(first) + (end > first ? "-" + std::to_string(end) : "");
  }
}

// The groups with the most bytes, at most `most`; in the order of their bytes, or in that in which they were met.
std::vector<std::string> largest(const std::vector<Candidate>& candidates, std::size_t most, bool by_bytes) {
  std::vector<std::pair<std::string, std::int64_t>> groups;  // in the order in which they were met
  std::unordered_map<std::string_view, std::size_t> place;
  for (const Candidate& c : candidates) {
    const auto [entry, is_new] = place.emplace(c.group, groups.size());
    if (is_new) groups.push_back({c.group, 0});
    groups[entry->second].second += c.bytes;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < groups.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return groups[a].second > groups[b].second; });
  if (order.size() > most) order.resize(most);
  if (!by_bytes) std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const std::size_t i : order) names.push_back(groups[i].first);
  return names;
}

}  // namespace

const char* colour_by_name(ColourBy by) { return kNames[static_cast<int>(by)]; }

bool find_colour_by(std::string_view name, ColourBy* by) {
  for (int i = 0; i < kColourByCount; ++i) {
    if (kNames[i] != name) continue;
    *by = static_cast<ColourBy>(i);
    return true;
  }
  return false;
}

ValueGroups::ValueGroups(const std::vector<const Graph*>& captured, ColourBy by) : by_(by) {
  if (by == ColourBy::module)
    group_modules(captured);
  else
    group_ops(captured);
  names_.push_back("others");
  names_.push_back(by == ColourBy::module ? "no module" : "given from outside");
}

void ValueGroups::group_modules(const std::vector<const Graph*>& captured) {
  constexpr int kDeepest = 8;
  for (const Graph* graph : captured)
    for (const Value& value : graph->values)
      if (value.node == kNone) outside_names_.insert(value.name.id());
  const auto at_depth = [&](int depth) {
    return candidates(captured, [&](const Node& node) { return beginning(module_of(node.origin.path), depth); });
  };
  std::vector<Candidate> found;
  int enough = 0;  // the first depth with enough groups
  for (depth_ = 1; depth_ <= kDeepest; ++depth_) {
    found = at_depth(depth_);
    if (found.size() < kLeast) continue;
    if (enough == 0) enough = depth_;
    if (largest_share(found) <= 0.5) break;
  }
  if (depth_ > kDeepest) found = at_depth(depth_ = enough == 0 ? kDeepest : enough);
  for (int by = 2; count_groups(found) > kMost && by <= 64; ++by) join_numbered(&found, by);
  if (count_groups(found) > kMost)
    for (Candidate& c : found) c.group = c.text;
  names_ = largest(found, kMost, false);
  for (const Candidate& c : found) {
    const auto group = std::find(names_.begin(), names_.end(), c.group);
    group_of_[c.text] = static_cast<int>(group - names_.begin());  // one behind the last: others
  }
}

void ValueGroups::group_ops(const std::vector<const Graph*>& captured) {
  const std::vector<Candidate> found = candidates(captured, [](const Node& node) { return std::string_view(node.op->name); });
  names_ = largest(found, kMost, true);
  for (std::size_t i = 0; i < names_.size(); ++i) group_of_[names_[i]] = static_cast<int>(i);
}

// A node that updates a parameter has the name of the parameter for its path: "fc.weight" is in the module "fc".
std::string_view ValueGroups::module_of(const Name& path) const {
  const std::string_view text = path.view();
  const std::size_t dot = text.rfind('.');
  return dot != std::string_view::npos && outside_names_.count(path.id()) > 0 ? text.substr(0, dot) : text;
}

int ValueGroups::of_path(std::string_view path) const {
  if (path.empty()) return outside();
  const auto found = group_of_.find(std::string(beginning(path, depth_)));
  return found == group_of_.end() ? others() : found->second;
}

int ValueGroups::of_node(const Graph& graph, NodeId n) const {
  const Node& node = graph.nodes[at(n)];
  const void* key = by_ == ColourBy::module ? node.origin.path.id() : static_cast<const void*>(node.op);
  const auto [entry, is_new] = known_.emplace(key, 0);
  if (!is_new) return entry->second;
  if (by_ == ColourBy::module) return entry->second = of_path(module_of(node.origin.path));
  const auto found = group_of_.find(node.op->name);
  return entry->second = found == group_of_.end() ? others() : found->second;
}

// "stage1.0.conv.weight" belongs to the module "stage1.0.conv", or to one that contains it.
int ValueGroups::of_value(const Graph& graph, ValueId v) const {
  const Value& value = graph.values[at(v)];
  if (value.node != kNone) return of_node(graph, value.node);
  if (by_ == ColourBy::op) return outside();
  std::string_view name = value.name.view();
  while (true) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return outside();
    name = name.substr(0, dot);
    const auto found = group_of_.find(std::string(beginning(name, depth_)));
    if (found != group_of_.end()) return found->second;
  }
}

}  // namespace tapedeck::viewer
