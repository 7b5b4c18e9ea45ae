#include <tapedeck/capture/tool/reports/compare_report.h>
#include <tapedeck/capture/tool/reports/json_parts.h>

#include <fmt/format.h>

namespace tapedeck::tool {

namespace {

Json side(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json list_json(const std::vector<PlanDifference>& differences) {
  Json list = Json::array();
  for (const PlanDifference& d : differences) list.push_back({{"name", d.name}, {"a", side(d.a)}, {"b", side(d.b)}});
  return list;
}

Json graph_json(const GraphComparison& g) {
  Json renamed = Json::array(), differences = Json::array();
  for (const auto& [a, b] : g.renamed) renamed.push_back({{"a", a}, {"b", b}});
  for (const GraphDifference& d : g.differences)
    differences.push_back({{"what", d.what}, {"name", d.name}, {"a", side(d.a)}, {"b", side(d.b)}});
  return {{"equal", g.equal()},   {"nodes_a", g.nodes_a},      {"nodes_b", g.nodes_b}, {"same", g.same},
          {"changed", g.changed}, {"only_a", g.only_a},        {"only_b", g.only_b},   {"moved", g.moved},
          {"renamed", renamed},   {"differences", differences}};
}

Json plan_comparison_json(const FileComparison& f) {
  if (!f.planned_a && !f.planned_b) return nullptr;
  Json j = {
      {"equal", f.planned_a == f.planned_b && (!f.plan || f.plan->equal())}, {"in_a", f.planned_a}, {"in_b", f.planned_b}};
  if (!f.plan) return j;
  j["figures"] = list_json(f.plan->figures);
  j["recomputed"] = list_json(f.plan->recomputed);
  j["placed"] = f.plan->placed;
  j["placements"] = list_json(f.plan->placements);
  return j;
}

Json numbers_json(const NumberComparison& n) {
  Json differences = Json::array();
  for (const auto& [name, d] : n.differences) {
    Json one = {{"name", name}};
    one.update(difference_json(d));
    differences.push_back(std::move(one));
  }
  return {
      {"equal", n.equal()}, {"compared", n.compared}, {"only_a", n.only_a}, {"only_b", n.only_b}, {"differences", differences}};
}

// Lines of one list, as many as are wanted.
class Lines {
 public:
  Lines(std::string* text, std::int64_t limit) : text_(text), limit_(limit) {}
  ~Lines() {
    if (limit_ > 0 && count_ > limit_) *text_ += fmt::format("  and {} more; --limit 0 prints all\n", count_ - limit_);
  }
  Lines(const Lines&) = delete;
  void add(const std::string& line) {
    if (++count_ <= limit_ || limit_ == 0) *text_ += line;
  }

 private:
  std::string* text_;
  std::int64_t limit_, count_ = 0;
};

std::string both(const std::string& a, const std::string& b) {
  return fmt::format("    A  {}\n    B  {}\n", a.empty() ? "-" : a, b.empty() ? "-" : b);
}

void add_list(const char* title, const std::vector<PlanDifference>& differences, std::int64_t limit, std::string* text) {
  if (differences.empty()) return;
  *text += fmt::format("  {}: {}\n", title, differences.size());
  Lines lines(text, limit);
  for (const PlanDifference& d : differences)
    lines.add(fmt::format("    {:<28} {} | {}\n", d.name, d.a.empty() ? "-" : d.a, d.b.empty() ? "-" : d.b));
}

void add_graph(const GraphComparison& g, std::int64_t limit, std::string* text) {
  *text += fmt::format("graph: {}; {} nodes and {}: {} same, {} renamed, {} changed, {} only in A, {} only in B, {} moved\n",
                       g.equal() ? "equal" : "DIFFERS", g.nodes_a, g.nodes_b, g.same, g.renamed.size(), g.changed, g.only_a,
                       g.only_b, g.moved);
  {
    Lines lines(text, limit);
    for (const GraphDifference& d : g.differences) lines.add(fmt::format("  {} {}\n{}", d.what, d.name, both(d.a, d.b)));
  }
  Lines lines(text, limit);
  for (const auto& [a, b] : g.renamed) lines.add(fmt::format("  renamed {} to {}\n", a, b));
}

void add_plan(const FileComparison& f, std::int64_t limit, std::string* text) {
  if (!f.plan) {
    *text += fmt::format("plan: {}\n", f.planned_a == f.planned_b ? "none in either"
                                       : f.planned_a              ? "DIFFERS; only A has one"
                                                                  : "DIFFERS; only B has one");
    return;
  }
  *text += fmt::format("plan: {}; {} values are in both\n", f.plan->equal() ? "equal" : "DIFFERS", f.plan->placed);
  add_list("figures", f.plan->figures, 0, text);
  add_list("recomputed otherwise", f.plan->recomputed, limit, text);
  add_list("placed otherwise", f.plan->placements, limit, text);
}

void add_numbers(const NumberComparison& n, std::int64_t limit, std::string* text) {
  *text += fmt::format("numbers: {}; {} tensors are in both, {} differ\n", n.equal() ? "equal" : "DIFFERS", n.compared,
                       n.differences.size());
  Lines lines(text, limit);
  for (const auto& [name, d] : n.differences) lines.add(fmt::format("  {}: {}\n", name, to_text(d)));
  for (const std::string& name : n.only_a) lines.add(fmt::format("  {}: only in A\n", name));
  for (const std::string& name : n.only_b) lines.add(fmt::format("  {}: only in B\n", name));
}

}  // namespace

std::string compare_report(const FileComparison& f) {
  return text_of({{"schema", "tapedeck.compare/1"},
                  {"a", f.a},
                  {"b", f.b},
                  {"equal", f.equal()},
                  {"graph", graph_json(f.graph)},
                  {"plan", plan_comparison_json(f)},
                  {"numbers", numbers_json(f.numbers)},
                  {"metadata", list_json(f.metadata)}});
}

std::string compare_text(const FileComparison& f, std::int64_t limit) {
  std::string text = fmt::format("A {}\nB {}\n", f.a, f.b);
  add_graph(f.graph, limit, &text);
  add_plan(f, limit, &text);
  add_numbers(f.numbers, limit, &text);
  if (!f.metadata.empty()) text += "metadata:\n";
  for (const PlanDifference& d : f.metadata)
    text += fmt::format("  {}: {} | {}\n", d.name, d.a.empty() ? "-" : d.a, d.b.empty() ? "-" : d.b);
  return text + (f.equal() ? "equal\n" : "different\n");
}

}  // namespace tapedeck::tool
