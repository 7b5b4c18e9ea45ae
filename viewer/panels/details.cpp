// Writes the details of the selection as HTML with links. A link "value:12" or "node:3" selects this value or node; without a
// selection the panel shows the numbers of the plan.
#include <tapedeck/viewer/panels/details.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/plan/byte_chains.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/regions.h>
#include <tapedeck/viewer/tables/document_csv.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/glossary.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/plan/level_names.h>

#include <QtCore/QEvent>
#include <QtCore/QUrl>
#include <QtGui/QTextCursor>
#include <QtWidgets/QScrollBar>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kLinesAtOnce = 24;  // of the list of what is alive; a document lays out so many in about 2 ms

// The key explains itself: its tooltip is its sentence of the glossary.
std::string details_row(const std::string& key, const std::string& html) {
  return "<tr><td style='color:" + html_colour(colours::kFaint) + "; padding-right:12px'><span title='" +
         escaped_html(explain_term(key)) + "'>" + key + "</span></td><td>" + html + "</td></tr>";
}

std::string link(const std::string& to, const std::string& text) {
  return "<a style='color:" + html_colour(colours::kLink) + "; text-decoration:none' href='" + to + "'>" + escaped_html(text) +
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
    return copy == shown ? escaped_html(title) + " (this one)" : link("value:" + std::to_string(copy), title);
  });
}

// The values that share bytes with v, each with a sentence; v itself has no link. Of a long chain, those around v.
std::string chain_html(const PlanModel& model, ValueId v) {
  constexpr std::size_t kBefore = 3, kMost = 8;
  const std::vector<ByteChainLink> chain = byte_chain(model, v);
  const auto is_self = [&](const ByteChainLink& link) { return link.value == v; };
  const auto self_at = static_cast<std::size_t>(std::find_if(chain.begin(), chain.end(), is_self) - chain.begin());
  const std::size_t first = std::min(self_at - std::min(self_at, kBefore), chain.size() - std::min(chain.size(), kMost));
  const std::size_t end = std::min(chain.size(), first + kMost);
  std::string lines = first > 0 ? std::to_string(first) + " before<br>" : "";
  for (std::size_t i = first; i < end; ++i) {
    const std::string name = model.name_of(chain[i].value), rest = escaped_html(chain[i].sentence.substr(name.size()));
    const std::string self = chain[i].value == v ? "<b>" + escaped_html(name) + "</b>" : value_link(model, chain[i].value);
    lines += (i == first ? "" : "<br>") + self + rest;
  }
  if (end < chain.size()) lines += "<br>" + std::to_string(chain.size() - end) + " after";
  return chain.empty() ? "" : details_row("shares bytes", lines);
}

std::string value_html(const PlanModel& model, ValueId v) {
  const Plan& plan = model.plan();
  const ValueFacts facts = explain_value(model, v);
  std::string html = "<h3>" + escaped_html(facts.name) + "</h3><table cellspacing=0 cellpadding=2>";
  html += details_row("type", escaped_html(facts.type)) + details_row("bytes", unit_of(plan).exact_text(facts.bytes)) +
          details_row("role", swatch(facts.role));
  html += details_row("place", escaped_html(facts.place)) + details_row("lifetime", facts.lifetime) +
          details_row("reason", escaped_html(facts.reason));
  html += details_row("decision", escaped_html(in_unit(facts.decision, unit_of(plan))));
  html += chain_html(model, v);
  html += details_row("readers", joined(facts.readers, [&](NodeId n) { return node_link(plan.graph, n); }));
  if (facts.copies.size() > 1) html += details_row("runs", runs_html(model, facts, v));
  return html + "</table>";
}

std::string measured_row(const Session& session, NodeId n) {
  const std::vector<double>& us = session.measured_us();
  if (us.empty() || std::isnan(us[static_cast<std::size_t>(n)])) return "";
  const double measured = us[static_cast<std::size_t>(n)], planned = session.model()->values().node_us(n);
  const bool is_own = session.measurements().of_plan(*session.model()) != nullptr;
  return details_row("measured", human_us(measured) + ", " + deviation_text(measured, planned) + " from the cost model" +
                                     (is_own ? "" : "; measured in another plan"));
}

std::string measured_rows(const Session& session) {
  const MeasuredRun* run = session.measurements().of_plan(*session.model());
  if (run == nullptr) return "";
  const Plan& plan = session.model()->plan();
  const auto bytes = [unit = unit_of(plan)](std::int64_t measured, std::int64_t planned) {
    return unit.exact_text(measured) + ", " + deviation_text(static_cast<double>(measured), static_cast<double>(planned));
  };
  const std::string step = human_us(run->step.median_us) + " (" + human_us(run->step.least_us) + " to " +
                           human_us(run->step.most_us) + "), " + grouped(run->step.runs) + " runs, " + grouped(run->threads) +
                           (run->threads == 1 ? " thread" : " threads") + ", " +
                           deviation_text(run->step.median_us, plan.cost_us) + " from the cost model";
  return details_row("measured peak", bytes(run->observed_peak_bytes, plan.peak_bytes)) +
         details_row("measured live", bytes(run->most_live, plan.lower_bound_bytes)) + details_row("measured step", step);
}

// A region by its numbers, with a link that draws it, and the first of its nodes with the places of their results in its arena.
std::string region_html(const PlanModel& model, NodeId n, int region, const RegionFacts& facts) {
  constexpr NodeId kMostNodes = 12;
  const ByteUnit unit = unit_of(model.plan());
  std::string html = grouped(facts.nodes) + (facts.nodes == 1 ? " node, " : " nodes, ") + human_us(facts.us) + " a run";
  if (facts.recomputed > 0) html += ", " + grouped(facts.recomputed) + " computed again";
  html += facts.is_planned ? "; an arena of " + unit.exact_text(facts.arena_bytes) + " in the workspace &nbsp;"
                           : "; no bytes of the plan &nbsp;";
  html += link("region:" + std::to_string(n) + "/" + std::to_string(region), "draw it");
  const Node& around = model.graph().nodes[n];
  const Plan* const plan = plan_of_region(model.plan(), around, region);
  const Graph& graph = plan != nullptr ? plan->graph : *model.graph().regions_of(around)[static_cast<std::size_t>(region)];
  for (NodeId i = 0; i < std::min(graph.node_count(), kMostNodes); ++i) {
    html += "<br><code>" + escaped_html(graph.node_text(i)) + "</code>";
    const Node& node = graph.nodes[i];
    if (plan == nullptr || node.n_outputs == 0 || plan->values[node.first_output].where != Where::arena) continue;
    html += " &nbsp;" + unit.readable_text(graph.values[node.first_output].type.bytes()) + " at " +
            grouped(plan->values[node.first_output].offset);
  }
  if (graph.node_count() > kMostNodes) html += "<br>and " + grouped(graph.node_count() - kMostNodes) + " more";
  return details_row(facts.title, html);
}

// The regions of a loop, a branch or a fused node.
std::string regions_html(const PlanModel& model, NodeId n) {
  const NodeRegions all = regions_of(model, n);
  if (all.regions.empty()) return "";
  std::string html = "<h4>Inside</h4><table cellspacing=0 cellpadding=2>";
  if (!all.runs.empty()) html += details_row("runs it", escaped_html(all.runs));
  if (!all.keeps.empty()) html += details_row("keeps", escaped_html(all.keeps));
  for (int region = 0; region < static_cast<int>(all.regions.size()); ++region)
    html += region_html(model, n, region, all.regions[static_cast<std::size_t>(region)]);
  return html + "</table>";
}

std::string node_html(const Session& session, NodeId n) {
  const PlanModel& model = *session.model();
  const Plan& plan = model.plan();
  const Graph& graph = plan.graph;
  const Node& node = graph.nodes[n];
  const Origin& origin = node.origin;
  std::string html = "<h3>" + escaped_html(node_title(graph, n)) + "</h3><table cellspacing=0 cellpadding=2>";
  html += details_row("doc", escaped_html(node.op->doc));
  html += details_row("text", "<code>" + escaped_html(node_line(model, n)) + "</code>");
  html += details_row("reads", joined(graph.inputs(node), [&](ValueId v) { return value_link(model, v); }));
  std::vector<ValueId> outputs;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) outputs.push_back(v);
  html += details_row("makes", joined(outputs, [&](ValueId v) { return value_link(model, v); }));
  html += details_row("time", human_us(model.values().node_us(n)) + " by the cost model (" + escaped_html(plan.costs) + ")");
  html += measured_row(session, n);
  html += details_row("phase", phase_name(origin.phase) + std::string(origin.clone ? ", recomputed" : ""));
  if (origin.clone) html += details_row("repeats", "%" + escaped_html(origin.of.str()));
  if (!origin.twin.empty()) html += details_row("gradient of", "%" + escaped_html(origin.twin.str()));
  if (!origin.path.empty()) html += details_row("module", escaped_html(origin.path.str()));
  if (origin.region != kNone) html += details_row("region", std::to_string(origin.region));
  if (!origin.site.empty()) html += details_row("call site", escaped_html(origin.site.str()));
  const Scratch scratch = static_cast<std::size_t>(n) < plan.workspace.size() ? plan.workspace[n] : Scratch{};
  if (scratch.bytes > 0)
    html += details_row("workspace", unit_of(plan).exact_text(scratch.bytes) + ", offset " + grouped(scratch.offset));
  if (const std::int32_t s = model.segment_of(n); s != kNone)
    html += details_row("segment", std::to_string(s) + " of " + std::to_string(plan.segments.size()) + ", " +
                                       human_us(plan.segments[static_cast<std::size_t>(s)].cost_us));
  return html + "</table>" + regions_html(model, n);
}

// A value that is alive at the peak, with the advice of the library.
std::string advice_html(const PlanModel& model, const PeakTenant& tenant) {
  const std::string what = tenant.value == kNone ? escaped_html(tenant.name) : value_link(model, tenant.value);
  return "<li>" + what + ", " + unit_of(model.plan()).readable_text(tenant.bytes) + ": " +
         escaped_html(in_unit(tenant.advice, unit_of(model.plan()))) + "</li>";
}

// Nodes that reach the lower bound by themselves, and why the peak is higher than that.
std::string bounds_html(const PlanModel& model, const PeakExplanation& e) {
  const ByteUnit unit = unit_of(model.plan());
  std::string html;
  for (const BindingNode& b : e.binding)
    if (b.binds)
      html += "<li>" + node_link(model.graph(), b.node) + " alone needs " + unit.exact_text(b.own_bytes) +
              ": no order and no recomputation of other nodes gets below</li>";
  return html + "<li>peak " + unit.exact_text(e.peak_bytes) + " = lower bound + " + unit.exact_text(e.gap_bytes) +
         " by placement: " + escaped_html(in_unit(e.gap_reason, unit)) + "</li>";
}

// Lines of the list of what is alive: no table, because a document lays out lines faster than rows.
std::string alive_lines(const PlanModel& model, std::span<const PlanRect> rects) {
  const ByteUnit unit = unit_of(model.plan());
  std::string lines;
  for (const PlanRect& rect : rects)
    lines += (lines.empty() ? "" : "<br>") + unit.readable_text(rect.bytes) + " &nbsp;" + swatch(rect.role) + " &nbsp;" +
             (rect.value == kNone ? "of " + node_link(model.graph(), rect.node) : value_link(model, rect.value));
  return lines;
}

// The same as lines of a CSV file, with the counts of bytes in full.
std::string alive_csv(const PlanModel& model, std::span<const PlanRect> rects) {
  const std::string section = "Alive at the peak, " + node_title(model.graph(), model.peak_node());
  std::string lines;
  for (const PlanRect& rect : rects) {
    const std::string name = rect.value == kNone ? "of " + node_title(model.graph(), rect.node) : model.name_of(rect.value);
    lines += fact_csv(section, name, role_class_name(rect.role), std::to_string(rect.bytes));
  }
  return lines;
}

// The total of what is alive, which is the height of the curve, and the largest of it.
std::string alive_html(const PlanModel& model, NodeId n, std::span<const PlanRect> alive) {
  return "<h4><span title='" + escaped_html(explain_term("alive")) + "'>Alive at the peak</span>, " +
         node_link(model.graph(), n) + "</h4><p><b>" + grouped(static_cast<std::int64_t>(alive.size())) + " in all, " +
         unit_of(model.plan()).exact_text(model.curve()[n]) + "</b><br>" +
         alive_lines(model, alive.first(std::min(alive.size(), kLinesAtOnce))) + "</p>";
}

std::string plan_html(const Session& session) {
  const Plan& plan = session.model()->plan();
  const auto bytes = [unit = unit_of(plan)](std::int64_t count) { return unit.exact_text(count); };
  std::string html = "<h3>" + escaped_html(plan.graph.name.str()) + "</h3><table cellspacing=0 cellpadding=2>";
  html += details_row("peak", bytes(plan.peak_bytes)) + details_row("external", bytes(plan.external_bytes)) +
          details_row("arena", bytes(plan.arena_bytes));
  html += details_row("lower bound", bytes(plan.lower_bound_bytes)) +
          details_row("floor", plan.floor_bytes > 0 ? bytes(plan.floor_bytes) : "not known yet");
  html += details_row("keep-all peak", bytes(plan.keep_all_peak_bytes));
  html += details_row("budget", plan.budget_bytes < 0 ? "none" : bytes(plan.budget_bytes));
  html += details_row("strategy", escaped_html(plan.strategy)) + details_row("passes", level_name(plan.level)) +
          details_row("nodes", grouped(plan.nodes)) + details_row("recomputed", grouped(plan.recomputed_nodes));
  html += details_row("cost", human_us(plan.cost_us) + " by the cost model, " + percent(plan.recompute_cost_ratio()) +
                                  " of keeping everything");
  html += details_row("costs", escaped_html(plan.costs)) + details_row("order", escaped_html(plan.order)) +
          details_row("segments", grouped(static_cast<std::int64_t>(plan.segments.size())));
  html += measured_rows(session);
  if (!plan.feasible)
    html += details_row("infeasible", "<span style='color:" + html_colour(colours::kProblem) + "'>" +
                                          escaped_html(grouped_numbers(plan.infeasible_reason)) + "</span>");
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
            const QStringList parts = url.path().split(QLatin1Char('/'));
            const int id = parts.front().toInt(&number);
            if (!number) return;
            if (url.scheme() == QLatin1String("region")) {
              if (on_region && parts.size() == 2) on_region(id, parts[1].toInt());
              return;
            }
            if (url.scheme() == QLatin1String("value"))
              session_.select_value(id);
            else
              session_.select_node(id);
          }));
  more_.setSingleShot(true);
  connect(&more_, &QTimer::timeout, this, guarded(this, [this] { add_lines(); }));
  // More of the list is written once the end of the text is nearly in view.
  const auto read_on = [this] {
    if (listed_ < listed_rects().size() && end_is_near(*verticalScrollBar())) more_.start(0);
  };
  connect(verticalScrollBar(), &QScrollBar::valueChanged, this, guarded(this, read_on));
  connect(verticalScrollBar(), &QScrollBar::rangeChanged, this, guarded(this, read_on));
  session_.attach(this);
  fill();
}

DetailsPanel::~DetailsPanel() {
  task_.cancel();
  session_.detach(this);
}

void DetailsPanel::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  shown_model_ = 0;  // the text has the colours of the theme before
  fill();
}

void DetailsPanel::closed() {
  more_.stop();
  task_.cancel();
  help_ = {};
  asked_model_ = 0;
  lists_alive_ = false;
  clear();
}

bool DetailsPanel::shows_peak() const {
  const PlanModel* model = session_.model();
  return model != nullptr && !session_.solving() && model->peak_node() != kNone &&
         session_.selection().node == model->peak_node();
}

// The explanation of a plan that is still being improved would be out of date at once.
void DetailsPanel::ask_for_help() {
  if (!shows_peak() || session_.model()->serial() == asked_model_) return;
  asked_model_ = session_.model()->serial();
  task_.run([this, mail = mail_, model = session_.shared_model()](const std::atomic<bool>& cancelled) {
    PeakHelp help;
    help.model = model->serial();
    try {
      help.explanation = explained_peak(*model);
    } catch (const std::exception& error) {
      help.error = error.what();
    }
    if (cancelled) return;
    {
      std::lock_guard lock(mail->mutex);
      mail->help = std::move(help);
    }
    QMetaObject::invokeMethod(this, guarded(this, [this] { arrived(); }), Qt::QueuedConnection);
  });
}

void DetailsPanel::arrived() {
  {
    std::lock_guard lock(mail_->mutex);
    if (std::optional<PeakHelp> help = std::exchange(mail_->help, std::nullopt)) help_ = std::move(*help);
  }
  if (!shows_peak() || help_.model != session_.model()->serial()) return;
  const int place = verticalScrollBar()->value();
  shown_model_ = 0;
  fill();
  verticalScrollBar()->setValue(place);
}

void DetailsPanel::finish() {
  ask_for_help();
  if (!shows_peak()) return;
  task_.wait();
  arrived();
  while (listed_ < listed_rects().size()) add_lines();
}

bool DetailsPanel::settled() const { return !shows_peak() || help_.model == session_.model()->serial(); }

std::string DetailsPanel::help_html() const {
  constexpr std::size_t kMost = 24;
  const PlanModel& model = *session_.model();
  const std::string title =
      "<h4><span title='" + escaped_html(explain_term("lowers")) + "'>What would lower the peak</span></h4>";
  if (!settled()) return title + "<p>…</p>";
  if (!help_.error.empty()) return title + "<p>" + escaped_html(help_.error) + "</p>";
  const PeakExplanation& e = help_.explanation;
  const std::vector<std::size_t> order = by_help(e);
  std::string lowers, others;
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    const PeakTenant& tenant = e.alive[order[i]];
    (lowers_the_peak(e, tenant) ? lowers : others) += advice_html(model, tenant);
  }
  std::string html = title + (lowers.empty() ? "<p>No change of one value alone would.</p>" : "<ul>" + lowers + "</ul>");
  if (!others.empty()) html += "<h4>What else is alive there, and why it does not help</h4><ul>" + others + "</ul>";
  return html + "<h4>The lower bound</h4><ul>" + bounds_html(model, e) + "</ul>";
}

// A large plan has so much alive at its peak that a copy of the list would block the window.
std::span<const PlanRect> DetailsPanel::listed_rects() const {
  const PlanModel* model = session_.model();
  if (!lists_alive_ || model == nullptr || model->serial() != shown_model_) return {};
  return model->alive_at_peak();
}

void DetailsPanel::add_lines() {
  const std::span<const PlanRect> all = listed_rects();
  const std::size_t end = std::min(all.size(), listed_ + kLinesAtOnce);
  if (listed_ < end) {
    QTextCursor at(document());
    at.movePosition(QTextCursor::End);
    at.insertBlock();
    at.insertHtml(QString::fromStdString(alive_lines(*session_.model(), all.subspan(listed_, end - listed_))));
  }
  listed_ = end;
}

bool DetailsPanel::lists_alive() const {
  const Selection& now = session_.selection();
  const NodeId peak = session_.model()->peak_node();
  return peak != kNone && (now.node == peak || (now.node == kNone && now.value == kNone));
}

std::string DetailsPanel::facts_html() const {
  const Selection& now = session_.selection();
  std::string html;
  if (now.value != kNone) html += value_html(*session_.model(), now.value);
  if (now.node != kNone) html += node_html(session_, now.node);
  if (html.empty()) return plan_html(session_);
  return html + (shows_peak() ? help_html() : "");
}

// A large plan has so much alive at its peak that the document does not list it before a person scrolls there.
void DetailsPanel::write_csv(const std::string& path) const {
  if (session_.model() == nullptr) throw UsageError("there is no plan to write");
  if (!settled()) throw UsageError("what would lower the peak is not known yet; try again in a moment");
  const PlanModel& model = *session_.model();
  QTextDocument facts;
  facts.setHtml(QString::fromStdString(facts_html()));
  AtomicWriter out(path);
  out.write(document_csv(facts));
  if (lists_alive()) out.write(alive_csv(model, model.alive_at_peak()));
  out.commit();
}

void DetailsPanel::fill() {
  const PlanModel* model = session_.model();
  const Selection& now = session_.selection();
  if (model == nullptr) {
    shown_model_ = 0;
    lists_alive_ = false;
    return clear();
  }
  ask_for_help();
  const bool same_numbers = model->serial() == shown_model_ && session_.measured_serial() == shown_measured_;
  if (same_numbers && now.value == shown_.value && now.node == shown_.node) return;
  shown_model_ = model->serial();
  shown_measured_ = session_.measured_serial();
  shown_ = now;
  std::string html = facts_html();
  listed_ = kLinesAtOnce;
  lists_alive_ = lists_alive();
  if (const auto all = listed_rects(); !all.empty()) html += alive_html(*model, model->peak_node(), all);
  setHtml(QString::fromStdString(html));
  if (listed_ >= listed_rects().size() || !end_is_near(*verticalScrollBar())) more_.stop();
}

}  // namespace tapedeck::viewer
