// Writes the details of the selection as HTML with links. A link "value:12" or "node:3" selects this value or node; without a
// selection the panel shows the numbers of the plan.
#include <tapedeck/viewer/panels/details.h>

#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/explain.h>
#include <tapedeck/viewer/model/format.h>

#include <tapedeck/capture/plan/level_names.h>

#include <QtCore/QEvent>
#include <QtCore/QUrl>

#include <algorithm>
#include <string>

namespace tapedeck::viewer {

namespace {

std::string escaped(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped().toStdString(); }

std::string row(const std::string& key, const std::string& html) {
  return "<tr><td style='color:" + html_colour(colours::kFaint) + "; padding-right:12px'>" + key + "</td><td>" + html +
         "</td></tr>";
}

std::string link(const std::string& to, const std::string& text) {
  return "<a style='color:" + html_colour(colours::kLink) + "; text-decoration:none' href='" + to + "'>" + escaped(text) +
         "</a>";
}

std::string value_link(const Graph& graph, ValueId v) { return link("value:" + std::to_string(v), shown_name(graph, v)); }
std::string node_link(const Graph& graph, NodeId n) { return link("node:" + std::to_string(n), node_title(graph, n)); }

// Joins the first twelve items of a list, and says how many more there are.
template <class Items, class One>
std::string joined(const Items& items, One&& one) {
  std::string html;
  std::size_t shown = 0;
  for (const auto item : items) {
    if (shown == 12) return html + " and " + std::to_string(items.size() - shown) + " more";
    html += (shown++ == 0 ? "" : ", ") + one(item);
  }
  return html.empty() ? "none" : html;
}

std::string swatch(RoleClass role) {
  return "<span style='color:" + html_colour(role_class_colour(role)) + "'>&#9632;</span> " + role_class_name(role);
}

std::string value_html(const Plan& plan, ValueId v) {
  const Graph& graph = plan.graph;
  const ValueFacts facts = explain_value(plan, v);
  const Placement& p = plan.values[v];
  std::string html = "<h3>" + escaped(facts.name) + "</h3><table cellspacing=0 cellpadding=2>";
  html += row("type", escaped(facts.type)) + row("bytes", exact_bytes(facts.bytes)) + row("role", swatch(facts.role));
  html += row("place", escaped(facts.place)) + row("lifetime", facts.lifetime) + row("reason", escaped(facts.reason));
  if (p.other != kNone && (p.reason == Reason::in_place || p.reason == Reason::part || p.reason == Reason::alias))
    html += row("shares bytes", value_link(graph, p.other));
  html += row("readers", joined(facts.readers, [&](NodeId n) { return node_link(graph, n); }));
  if (!facts.clones.empty()) html += row("clones", joined(facts.clones, [&](ValueId c) { return value_link(graph, c); }));
  if (facts.clone_of != kNone) html += row("clone of", value_link(graph, facts.clone_of));
  return html + "</table>";
}

std::string node_html(const Plan& plan, NodeId n) {
  const Graph& graph = plan.graph;
  const Node& node = graph.nodes[n];
  const Origin& origin = node.origin;
  std::string html = "<h3>" + escaped(node_title(graph, n)) + "</h3><table cellspacing=0 cellpadding=2>";
  html += row("doc", escaped(node.op->doc));
  html += row("text", "<code>" + escaped(graph.node_text(n)) + "</code>");
  html += row("reads", joined(graph.inputs(node), [&](ValueId v) { return value_link(graph, v); }));
  std::vector<ValueId> outputs;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) outputs.push_back(v);
  html += row("makes", joined(outputs, [&](ValueId v) { return value_link(graph, v); }));
  html += row("phase", phase_name(origin.phase) + std::string(origin.clone ? ", recomputed" : ""));
  if (origin.clone) html += row("repeats", "%" + escaped(origin.of.str()));
  if (!origin.twin.empty()) html += row("gradient of", "%" + escaped(origin.twin.str()));
  if (!origin.path.empty()) html += row("module", escaped(origin.path.str()));
  if (origin.region != kNone) html += row("region", std::to_string(origin.region));
  if (!origin.site.empty()) html += row("call site", escaped(origin.site.str()));
  const Scratch scratch = static_cast<std::size_t>(n) < plan.workspace.size() ? plan.workspace[n] : Scratch{};
  if (scratch.bytes > 0) html += row("workspace", exact_bytes(scratch.bytes) + ", offset " + grouped(scratch.offset));
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    if (std::binary_search(plan.segments[s].nodes.begin(), plan.segments[s].nodes.end(), n))
      html += row("segment", std::to_string(s) + " of " + std::to_string(plan.segments.size()) + ", " +
                                 human_us(plan.segments[s].cost_us));
  return html + "</table>";
}

std::string plan_html(const PlanModel& model) {
  const Plan& plan = model.plan();
  std::string html = "<h3>" + escaped(plan.graph.name.str()) + "</h3><table cellspacing=0 cellpadding=2>";
  html += row("peak", exact_bytes(plan.peak_bytes)) + row("external", exact_bytes(plan.external_bytes)) +
          row("arena", exact_bytes(plan.arena_bytes));
  html += row("lower bound", exact_bytes(plan.lower_bound_bytes)) + row("floor", exact_bytes(plan.floor_bytes));
  html += row("keep-all peak", exact_bytes(plan.keep_all_peak_bytes));
  html += row("budget", plan.budget_bytes < 0 ? "none" : exact_bytes(plan.budget_bytes));
  html += row("strategy", escaped(plan.strategy)) + row("passes", level_name(plan.level)) + row("nodes", grouped(plan.nodes)) +
          row("recomputed", grouped(plan.recomputed_nodes));
  html +=
      row("cost", human_us(plan.cost_us) + " of the model, " + percent(plan.recompute_cost_ratio()) + " of keeping everything");
  html += row("segments", grouped(static_cast<std::int64_t>(plan.segments.size())));
  if (!plan.feasible)
    html += row("infeasible",
                "<span style='color:" + html_colour(colours::kProblem) + "'>" + escaped(plan.infeasible_reason) + "</span>");
  html += "</table>";
  if (model.peak_node() == kNone) return html;
  html += "<h4>Alive at the peak, " + node_link(plan.graph, model.peak_node()) + "</h4><table cellspacing=0 cellpadding=2>";
  int shown = 0;
  for (const PlanRect& rect : model.alive(model.peak_node())) {
    if (shown++ == 16) break;
    html += row(human_bytes(rect.bytes), (rect.value == kNone ? std::string("workspace") : value_link(plan.graph, rect.value)) +
                                             " &nbsp;" + swatch(rect.role));
  }
  return html + "</table>";
}

}  // namespace

DetailsPanel::DetailsPanel(Session& session, QWidget* parent) : QTextBrowser(parent), session_(session) {
  setOpenLinks(false);
  setAccessibleName(QStringLiteral("details"));
  connect(this, &QTextBrowser::anchorClicked, this, guarded(this, [this](const QUrl& url) {
            bool number = false;
            const int id = url.path().toInt(&number);
            if (!number) return;
            if (url.scheme() == QLatin1String("value"))
              session_.select_value(id);
            else
              session_.select_node(id);
          }));
  session_.attach(this);
  fill();
}

DetailsPanel::~DetailsPanel() { session_.detach(this); }

void DetailsPanel::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  shown_model_ = 0;  // the text has the colours of the theme before
  fill();
}

void DetailsPanel::fill() {
  const PlanModel* model = session_.model();
  const Selection& now = session_.selection();
  if (model == nullptr) {
    shown_model_ = 0;
    return clear();
  }
  if (model->serial() == shown_model_ && now.value == shown_.value && now.node == shown_.node) return;
  shown_model_ = model->serial();
  shown_ = now;
  std::string html;
  if (now.value != kNone) html += value_html(model->plan(), now.value);
  if (now.node != kNone) html += node_html(model->plan(), now.node);
  if (html.empty()) html = plan_html(*model);
  setHtml(QString::fromStdString(html));
}

}  // namespace tapedeck::viewer
