// Writes the details of the selection as HTML with links. A link "value:12" or "node:3" selects this value or node; without a
// selection the panel shows the numbers of the plan.
#include <tapedeck/viewer/panels/details.h>

#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/explain.h>
#include <tapedeck/viewer/model/format.h>
#include <tapedeck/viewer/model/glossary.h>

#include <tapedeck/capture/plan/level_names.h>

#include <QtCore/QEvent>
#include <QtCore/QUrl>
#include <QtGui/QTextCursor>
#include <QtWidgets/QScrollBar>

#include <algorithm>
#include <span>
#include <string>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kLinesAtOnce = 24;  // of the list of what is alive; a document lays out so many in about 2 ms

std::string escaped(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped().toStdString(); }

// The key explains itself: its tooltip is its sentence of the glossary.
std::string row(const std::string& key, const std::string& html) {
  return "<tr><td style='color:" + html_colour(colours::kFaint) + "; padding-right:12px'><span title='" +
         escaped(explain_term(key)) + "'>" + key + "</span></td><td>" + html + "</td></tr>";
}

std::string link(const std::string& to, const std::string& text) {
  return "<a style='color:" + html_colour(colours::kLink) + "; text-decoration:none' href='" + to + "'>" + escaped(text) +
         "</a>";
}

std::string value_link(const PlanModel& model, ValueId v) { return link("value:" + std::to_string(v), model.name_of(v)); }
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

// The runs that compute the value: the nodes, each a link to its copy.
std::string runs_html(const PlanModel& model, const ValueFacts& facts, ValueId shown) {
  return joined(facts.copies, [&](ValueId copy) {
    const std::string title = node_title(model.graph(), model.graph().values[copy].node);
    return copy == shown ? escaped(title) + " (this one)" : link("value:" + std::to_string(copy), title);
  });
}

std::string value_html(const PlanModel& model, ValueId v) {
  const Plan& plan = model.plan();
  const ValueFacts facts = explain_value(model, v);
  const Placement& p = plan.values[v];
  std::string html = "<h3>" + escaped(facts.name) + "</h3><table cellspacing=0 cellpadding=2>";
  html += row("type", escaped(facts.type)) + row("bytes", exact_bytes(facts.bytes)) + row("role", swatch(facts.role));
  html += row("place", escaped(facts.place)) + row("lifetime", facts.lifetime) + row("reason", escaped(facts.reason));
  html += row("decision", escaped(facts.decision));
  if (p.other != kNone && (p.reason == Reason::in_place || p.reason == Reason::part || p.reason == Reason::alias))
    html += row("shares bytes", value_link(model, p.other));
  html += row("readers", joined(facts.readers, [&](NodeId n) { return node_link(plan.graph, n); }));
  if (facts.copies.size() > 1) html += row("runs", runs_html(model, facts, v));
  return html + "</table>";
}

std::string node_html(const PlanModel& model, NodeId n) {
  const Plan& plan = model.plan();
  const Graph& graph = plan.graph;
  const Node& node = graph.nodes[n];
  const Origin& origin = node.origin;
  std::string html = "<h3>" + escaped(node_title(graph, n)) + "</h3><table cellspacing=0 cellpadding=2>";
  html += row("doc", escaped(node.op->doc));
  html += row("text", "<code>" + escaped(node_line(model, n)) + "</code>");
  html += row("reads", joined(graph.inputs(node), [&](ValueId v) { return value_link(model, v); }));
  std::vector<ValueId> outputs;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) outputs.push_back(v);
  html += row("makes", joined(outputs, [&](ValueId v) { return value_link(model, v); }));
  html += row("us", human_us(model.values().node_us(n)) + " by the cost model (" + escaped(plan.costs) + ")");
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

// Lines of the list of what is alive: no table, because a document lays out lines faster than rows.
std::string alive_lines(const PlanModel& model, std::span<const PlanRect> rects) {
  std::string lines;
  for (const PlanRect& rect : rects)
    lines += (lines.empty() ? "" : "<br>") + human_bytes(rect.bytes) + " &nbsp;" + swatch(rect.role) + " &nbsp;" +
             (rect.value == kNone ? "of " + node_link(model.graph(), rect.node) : value_link(model, rect.value));
  return lines;
}

// The total of what is alive, which is the height of the curve, and the largest of it.
std::string alive_html(const PlanModel& model, NodeId n, std::span<const PlanRect> alive) {
  std::int64_t total = 0;
  for (const PlanRect& rect : alive) total += rect.bytes;
  return "<h4><span title='" + escaped(explain_term("alive")) + "'>Alive at the peak</span>, " + node_link(model.graph(), n) +
         "</h4><p><b>" + grouped(static_cast<std::int64_t>(alive.size())) + " in all, " + exact_bytes(total) + "</b><br>" +
         alive_lines(model, alive.first(std::min(alive.size(), kLinesAtOnce))) + "</p>";
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
  html += row("costs", escaped(plan.costs)) + row("order", escaped(plan.order)) +
          row("segments", grouped(static_cast<std::int64_t>(plan.segments.size())));
  if (!plan.feasible)
    html += row("infeasible",
                "<span style='color:" + html_colour(colours::kProblem) + "'>" + escaped(plan.infeasible_reason) + "</span>");
  html += "</table>";
  return html;
}

bool end_is_near(const QScrollBar& bar) { return bar.maximum() - bar.value() <= 2 * bar.pageStep(); }

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
  more_.setSingleShot(true);
  connect(&more_, &QTimer::timeout, this, guarded(this, [this] { add_lines(); }));
  // More of the list is written once the end of the text is nearly in view.
  const auto read_on = [this] {
    if (listed_ < alive_.size() && end_is_near(*verticalScrollBar())) more_.start(0);
  };
  connect(verticalScrollBar(), &QScrollBar::valueChanged, this, guarded(this, read_on));
  connect(verticalScrollBar(), &QScrollBar::rangeChanged, this, guarded(this, read_on));
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

void DetailsPanel::closed() {
  alive_.clear();
  clear();
}

void DetailsPanel::add_lines() {
  const std::size_t end = std::min(alive_.size(), listed_ + kLinesAtOnce);
  if (listed_ < end && session_.model() != nullptr) {
    QTextCursor at(document());
    at.movePosition(QTextCursor::End);
    at.insertBlock();
    at.insertHtml(QString::fromStdString(alive_lines(*session_.model(), std::span(alive_).subspan(listed_, end - listed_))));
  }
  listed_ = end;
}

void DetailsPanel::fill() {
  const PlanModel* model = session_.model();
  const Selection& now = session_.selection();
  if (model == nullptr) {
    shown_model_ = 0;
    alive_.clear();
    return clear();
  }
  if (model->serial() == shown_model_ && now.value == shown_.value && now.node == shown_.node) return;
  shown_model_ = model->serial();
  shown_ = now;
  std::string html;
  if (now.value != kNone) html += value_html(*model, now.value);
  if (now.node != kNone) html += node_html(*model, now.node);
  alive_.clear();
  listed_ = kLinesAtOnce;
  const bool is_plan = html.empty();
  if (is_plan) html = plan_html(*model);
  if (model->peak_node() != kNone && (is_plan || now.node == model->peak_node())) alive_ = model->alive_at_peak();
  if (!alive_.empty()) html += alive_html(*model, model->peak_node(), alive_);
  setHtml(QString::fromStdString(html));
  if (listed_ >= alive_.size() || !end_is_near(*verticalScrollBar())) more_.stop();
}

}  // namespace tapedeck::viewer
