// Draws points of cost over peak: the curves of all strategies, the known plans, the bound, the shown plan, and a list of the
// known plans beside them.
#include <tapedeck/viewer/panels/tradeoff.h>

#include <tapedeck/viewer/panels/measured.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/glossary.h>
#include <tapedeck/viewer/words/ticks.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/viewer/drawing/imgui_host.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <set>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

constexpr NodeId kMostNodesUnasked = 3000;  // the curves of larger graphs take minutes, so a person has to ask for them
constexpr float kListWidth = 250;
constexpr float kNameHeight = 17;      // of a row of the names of strategies
constexpr double kLeastExtra = 0.005;  // the least height of the cost axis above 1

// The colours of the strategies: the planner's own choice stands out, and keeping everything is faint. The others have those of
// the roles, which differ for colour-blind people too.
Colour curve_colour(const TradeoffCurve& curve, std::size_t i) {
  if (curve.strategy == Strategy::automatic) return colours::kText;
  if (curve.strategy == Strategy::none) return colours::kFaint;
  constexpr RoleClass kRoles[] = {RoleClass::saved, RoleClass::gradient, RoleClass::recomputed,
                                  RoleClass::input, RoleClass::output,   RoleClass::state};
  constexpr int kOthers[] = {5, 7};  // groups whose colours are none of these
  const std::size_t at = i % (std::size(kRoles) + std::size(kOthers));
  if (at >= std::size(kRoles)) return group_colour(kOthers[at - std::size(kRoles)]);
  return role_class_colour(kRoles[at]);
}

void dot(ImVec2 at, float radius, Colour colour) { shapes()->AddCircleFilled(at, radius, to_imgui(colour), 12); }

void line_between(ImVec2 a, ImVec2 b, Colour colour, float thickness = 1.5f) {
  shapes()->AddLine(a, b, to_imgui(colour), thickness);
}

void dashed_line(ImVec2 a, ImVec2 b, Colour colour) {
  const float dx = b.x - a.x, dy = b.y - a.y, length = std::sqrt(dx * dx + dy * dy);
  for (float at = 0; at < length; at += 8) {
    const float from = at / length, to = std::min(at + 4, length) / length;
    line_between(ImVec2(a.x + dx * from, a.y + dy * from), ImVec2(a.x + dx * to, a.y + dy * to), colour, 1);
  }
}

// A sentence that explains a strategy.
std::string strategy_sentence(const TradeoffCurve& curve) {
  const StrategyEntry* entry = find_strategy(curve.strategy);
  return entry != nullptr ? "It " + std::string(entry->doc) + "." : explain_term("strategy " + curve.name);
}

// Of plans of the same peak and cost, the one of the least budget: its bound is the tightest. `points` ascend by budget.
std::vector<KnownPlan> without_repeats(const std::vector<KnownPlan>& points) {
  std::vector<KnownPlan> kept;
  for (const KnownPlan& p : points)
    if (!p.feasible || kept.empty() || !kept.back().feasible || kept.back().peak != p.peak || kept.back().ratio != p.ratio)
      kept.push_back(p);
  return kept;
}

// The places of the picture at which a curve has a plan.
std::set<std::pair<std::int64_t, double>> places_of(const TradeoffCurve& curve) {
  std::set<std::pair<std::int64_t, double>> places;
  for (const TradeoffPoint& p : curve.points)
    if (p.feasible) places.emplace(p.peak_bytes, p.cost_ratio);
  return places;
}

std::string ratio_text(double ratio) { return fmt::format("×{:.4f}", ratio); }

}  // namespace

void TradeoffPanel::closed() {
  task_.cancel();
  curves_.reset();
  started_ = false;
  error_.clear();
  PicturePanel::closed();
}

// Curves for other wishes are out of date.
void TradeoffPanel::plan_changed() {
  const bool disturbs = session_.measuring() && !curves_;  // a replay that is timed; the work begins again behind it
  if (started_ && (disturbs || session_.wishes() != curves_wishes_)) {
    task_.cancel();
    curves_.reset();
    started_ = false;
  }
  PicturePanel::plan_changed();
}

void TradeoffPanel::start() {
  if (started_ || session_.document() == nullptr) return;
  started_ = true;
  curves_wishes_ = session_.wishes();
  error_.clear();
  TradeoffOptions options;
  options.plan = session_.document()->options;
  options.plan.wishes = session_.wishes();
  options.plan.strategy = Strategy::automatic;
  task_.run([mail = mail_, captured = session_.document()->captured, options,
             wake = wake_function()](const std::atomic<bool>& cancelled) mutable {
    options.plan.cancel = &cancelled;
    std::optional<Tradeoff> found;
    std::string error;
    try {
      found = tradeoff(*captured, options);
    } catch (const std::exception& e) {
      error = e.what();
    }
    if (cancelled) return;
    {
      std::lock_guard lock(mail->mutex);
      mail->curves = std::move(found);
      mail->error = std::move(error);
    }
    if (wake) wake();
  });
}

void TradeoffPanel::arrive() {
  std::lock_guard lock(mail_->mutex);
  if (mail_->curves) curves_ = std::exchange(mail_->curves, std::nullopt);
  if (!mail_->error.empty()) error_ = std::exchange(mail_->error, {});
}

void TradeoffPanel::finish() {
  start();
  task_.wait();
  arrive();
}

void TradeoffPanel::stop() {
  task_.cancel();
  task_.wait();
}

// The plans of this window; before there are any, the curve of the strategy that chooses by itself.
std::vector<KnownPlan> TradeoffPanel::known_or_automatic() const {
  if (!session_.known().empty() || !curves_) return session_.known();
  std::vector<KnownPlan> points;
  for (const TradeoffCurve& curve : curves_->curves)
    if (curve.strategy == Strategy::automatic)
      for (const TradeoffPoint& p : curve.points) {
        const double bound = curves_->keep_all_cost_us > 0 ? p.cost_lower_bound_us / curves_->keep_all_cost_us : 0;
        points.push_back({p.budget_bytes, p.peak_bytes, p.cost_ratio, bound, p.feasible});
      }
  return points;
}

// The names of strategies that draw a line stand first. A line that lies under that of the planner's own choice is told, and so
// are strategies that found one plan only, of which there is a dot.
float TradeoffPanel::draw_names(float x, float y, float width) const {
  if (!curves_) return 0;
  const std::vector<TradeoffCurve>& curves = curves_->curves;
  const auto automatic =
      std::find_if(curves.begin(), curves.end(), [](const TradeoffCurve& c) { return c.strategy == Strategy::automatic; });
  float at = x, top = y;
  const auto place_for = [&](float item) {
    if (at + item <= x + width || at == x) return;
    at = x;
    top += kNameHeight;
  };
  const auto draw_name = [&](std::size_t i) {
    const bool is_hidden =
        automatic != curves.end() && &curves[i] != &*automatic && places_of(curves[i]) == places_of(*automatic);
    const std::string name = curves[i].name + (is_hidden ? " (as auto)" : "");
    const float item = 20 + text_width(TextSize::small, name);
    place_for(item);
    dot(ImVec2(at + 3, top + 7), 3, curve_colour(curves[i], i));
    draw_text(TextSize::small, at + 10, top, colours::kText, name);
    if (is_under_mouse(at, top, item - 6)) explained_tooltip("strategy " + curves[i].name, strategy_sentence(curves[i]), "");
    at += item;
  };
  const std::string one_each = "one plan each:";
  bool is_said = false;
  for (const bool is_line : {true, false})
    for (std::size_t i = 0; i < curves.size(); ++i) {
      const std::size_t places = places_of(curves[i]).size();
      if (places == 0 || (places > 1) != is_line) continue;
      if (!is_line && !std::exchange(is_said, true)) {
        const float item = 12 + text_width(TextSize::small, one_each);
        place_for(item);
        draw_text(TextSize::small, at, top, colours::kFaint, one_each);
        at += item;
      }
      draw_name(i);
    }
  return top - y + kNameHeight;
}

void TradeoffPanel::lay_out(float top, float width, float height) {
  const Plan& plan = session_.model()->plan();
  double low = static_cast<double>(plan.peak_bytes),
         high = static_cast<double>(std::max(plan.keep_all_peak_bytes, plan.peak_bytes));
  double least = 1, most = std::max(plan.recompute_cost_ratio(), 1 + kLeastExtra);
  for (const KnownPlan& p : points_) {
    if (!p.feasible) continue;
    low = std::min(low, static_cast<double>(p.peak));
    high = std::max(high, static_cast<double>(p.peak));
    most = std::max(most, p.ratio);
  }
  for (const MeasuredPoint& p : session_.measurements().points()) {
    low = std::min(low, static_cast<double>(p.observed_peak_bytes));
    high = std::max(high, static_cast<double>(p.observed_peak_bytes));
    most = std::max({most, p.ratio(), p.planned_ratio});
    least = std::min(least, p.ratio());
  }
  // A strategy that costs many times as much would press the others onto the axis, so its points may lie outside.
  const double limit = 1 + (most - 1) * 2;
  if (curves_)
    for (const TradeoffCurve& curve : curves_->curves)
      for (const TradeoffPoint& p : curve.points)
        if (p.feasible) {
          low = std::min(low, static_cast<double>(p.peak_bytes));
          most = std::max(most, std::min(p.cost_ratio, limit));
        }
  const double air = std::max((high - low) * 0.04, 1.0), rise = (most - least) * 0.06;
  const bool has_list = width > 560;
  plot_ = make_plot(66, top, width - (has_list ? kListWidth + 24 : 24), height - 40, {low - air, high + air},
                    {least - rise, most + rise});
}

void TradeoffPanel::draw_axes() const {
  const Plan& plan = session_.model()->plan();
  draw_plot_ground(plot_);
  const ByteAxis bytes = byte_ticks(plot_.across.low, plot_.across.high, unit_of(plan), 8);
  for (const Tick& tick : bytes.ticks) {
    const float x = std::round(plot_.x_of(tick.at));
    shapes()->AddRectFilled(ImVec2(x, plot_.y0), ImVec2(x + 1, plot_.y1), to_imgui(colours::kGrid));
    draw_text(TextSize::small, x - text_width(TextSize::small, tick.label) / 2, plot_.y1 + 5, colours::kFaint, tick.label);
  }
  const std::string unit = "peak (" + bytes.unit + ")";
  draw_text(TextSize::small, plot_.x1 - text_width(TextSize::small, unit), plot_.y1 + 20, colours::kFaint, unit);
  const double range = plot_.up.high - plot_.up.low;
  const double step =
      std::pow(10, std::floor(std::log10(range))) / (range / std::pow(10, std::floor(std::log10(range))) < 3 ? 4 : 1);
  for (double at = std::ceil(plot_.up.low / step) * step; at <= plot_.up.high; at += step) {
    const float y = std::round(plot_.y_of(at));
    shapes()->AddRectFilled(ImVec2(plot_.x0, y), ImVec2(plot_.x1, y + 1), to_imgui(colours::kGrid));
    const std::string label = fmt::format("×{:.{}f}", at, step < 0.01 ? 4 : step < 0.1 ? 3 : 2);
    draw_text(TextSize::small, plot_.x0 - 6 - text_width(TextSize::small, label), y - 7, colours::kFaint, label);
  }
}

void TradeoffPanel::draw_curves() {
  if (!curves_) return;
  for (std::size_t i = 0; i < curves_->curves.size(); ++i) {
    const TradeoffCurve& curve = curves_->curves[i];
    const Colour colour = curve_colour(curve, i);
    const ImVec2* before = nullptr;
    ImVec2 last;
    for (const TradeoffPoint& p : curve.points) {
      if (!p.feasible) continue;
      const ImVec2 at(plot_.x_of(static_cast<double>(p.peak_bytes)), plot_.y_of(p.cost_ratio));
      if (before != nullptr) line_between(*before, at, colour, 1.2f);
      dot(at, 2.5f, colour);
      last = at;
      before = &last;
      marks_.push_back({p.budget_bytes, p.peak_bytes, p.cost_ratio, curve.name});
    }
  }
}

void TradeoffPanel::draw_known() {
  const std::string strategy = session_.document() == nullptr ? "" : strategy_name(session_.document()->options.strategy);
  const KnownPlan* before = nullptr;
  const auto place = [&](const KnownPlan& p, double ratio) {
    return ImVec2(plot_.x_of(static_cast<double>(p.peak)), plot_.y_of(ratio));
  };
  for (const KnownPlan& p : points_) {
    if (!p.feasible) continue;
    if (before != nullptr) {
      line_between(place(*before, before->ratio), place(p, p.ratio), colours::kText, 1.5f);
      if (before->bound > 0 && p.bound > 0) dashed_line(place(*before, before->bound), place(p, p.bound), colours::kFaint);
    }
    dot(place(p, p.ratio), 3, colours::kText);
    marks_.push_back({p.budget, p.peak, p.ratio, strategy});
    before = &p;
  }
}

void TradeoffPanel::draw_now() {
  const Plan& plan = session_.model()->plan();
  const ImVec2 at(plot_.x_of(static_cast<double>(plan.peak_bytes)), plot_.y_of(plan.recompute_cost_ratio()));
  dot(at, 6, colours::kPeak);
  dot(at, 3.5f, colours::kPlot);
  const std::string text = unit_of(plan).text(plan.peak_bytes) + ", " + ratio_text(plan.recompute_cost_ratio());
  draw_plate(plot_, at.x + 10, at.y - 24, false, colours::kPeak, text);
}

void TradeoffPanel::draw_list(float x, float y, float width, float height) const {
  const auto row = [&](float at, Colour colour, const std::string& peak, const std::string& cost, const std::string& gap) {
    draw_text(TextSize::small, x, at, colour, peak);
    draw_text(TextSize::small, x + width * 0.62f - text_width(TextSize::small, cost), at, colour, cost);
    draw_text(TextSize::small, x + width - text_width(TextSize::small, gap), at, colour, gap);
  };
  const float measured = draw_measured_list(x, y, width, unit_of(session_.model()->plan()), session_.measurements().points());
  y += measured;
  height -= measured;
  row(y, colours::kFaint, "peak", "cost", "above bound");
  const std::pair<const char*, float> titles[] = {
      {"tradeoff peak", 0}, {"tradeoff cost", width * 0.32f}, {"above bound", width * 0.64f}};
  for (const auto& [term, left] : titles)
    if (is_under_mouse(x + left, y, width * 0.3f))
      explained_tooltip(std::string(term).substr(std::string(term).rfind(' ') + 1), explain_term(term), "");
  float at = y + 18;
  for (const KnownPlan& p : points_) {
    if (!p.feasible) continue;
    if (at + 32 > y + height) return draw_text(TextSize::small, x, at, colours::kFaint, "… and more: export the CSV");
    row(at, colours::kText, unit_of(session_.model()->plan()).text(p.peak), ratio_text(p.ratio),
        p.bound > 0 ? fmt::format("{:.2f} %", 100 * (p.ratio / p.bound - 1)) : "");
    at += 16;
  }
}

void TradeoffPanel::hover() {
  const ImGuiIO& io = ImGui::GetIO();
  if (!plot_.contains(io.MousePos)) return;
  const double across = plot_.across.size() / static_cast<double>(plot_.width()),
               up = plot_.up.size() / static_cast<double>(plot_.height());
  const double peak = plot_.across_at(io.MousePos.x);
  const double ratio = plot_.up.low + static_cast<double>(plot_.y1 - io.MousePos.y) * up;
  const TradeoffMark* mark = nearest_mark(marks_, peak, ratio, across, up, 14);
  if (mark != nullptr)
    ImGui::SetTooltip("%s: peak %s, cost %s. Click to take this budget.", mark->strategy.c_str(),
                      unit_of(session_.model()->plan()).text(mark->peak).c_str(), ratio_text(mark->ratio).c_str());
  if (io.MouseClicked[0]) pressed_ = true;
  if (io.MouseDown[0] || !std::exchange(pressed_, false)) return;
  session_.ask_budget(mark != nullptr ? mark->budget : std::llround(std::max(peak, 0.0)));
}

void TradeoffPanel::draw(float width, float height) {
  if (draw_nothing(width, height)) return;
  arrive();
  const bool is_large = session_.model()->nodes() > kMostNodesUnasked;
  if (!is_large && session_.planning() == Planning::done && !session_.measuring()) start();
  draw_text_cut(TextSize::title, 12, 8, width - 24, colours::kText, "What memory costs in time");
  std::string status = "cost as a multiple of keeping everything; dashed: no plan that fits costs less";
  if (!session_.measurements().points().empty())
    status += " · diamonds: measured, with lines from the fastest to the slowest step";
  if (!error_.empty())
    status = error_;
  else if (started_ && !curves_)
    status += " · the curves of all strategies are being worked out…";
  draw_text_cut(TextSize::small, 12, 29, width - 24, colours::kFaint, status);
  points_ = without_repeats(known_or_automatic());
  lay_out(52 + draw_names(66, 48, width - 90), width, height);
  marks_.clear();
  draw_axes();
  shapes()->PushClipRect(ImVec2(plot_.x0, plot_.y0), ImVec2(plot_.x1, plot_.y1), true);
  draw_curves();
  draw_known();
  draw_measured_points(plot_, session_.measurements().points(), &marks_);
  shapes()->PopClipRect();
  draw_now();
  if (width > 560) draw_list(plot_.x1 + 20, plot_.y0, kListWidth - 8, plot_.height());
  if (is_large && !started_ && draw_button(plot_.x0 + 10, plot_.y0 + 10, "Work out the curves of all strategies (minutes)"))
    start();
  hover();
}

ImVec2 TradeoffPanel::place_of(std::int64_t peak, double ratio) const {
  return ImVec2(plot_.x_of(static_cast<double>(peak)), plot_.y_of(ratio));
}

void TradeoffPanel::write_csv(const std::string& path) {
  const std::string strategy = session_.document() == nullptr ? "" : strategy_name(session_.document()->options.strategy);
  AtomicWriter out(path);
  out.write(tradeoff_points_csv(session_.known(), strategy, curves_ ? &*curves_ : nullptr, session_.measurements().points()));
  out.commit();
}

}  // namespace tapedeck::viewer
