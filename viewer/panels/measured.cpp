#include <tapedeck/viewer/panels/measured.h>

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

std::string bytes_text(const ByteUnit& unit, std::int64_t measured, std::int64_t planned) {
  return unit.text(measured) + " (" + deviation_text(static_cast<double>(measured), static_cast<double>(planned)) + ")";
}

std::string step_text(const MeasuredRun& run) {
  std::string text = "step " + human_us(run.step.median_us);
  if (run.step.most_us > run.step.least_us)
    text += " (" + human_us(run.step.least_us) + " to " + human_us(run.step.most_us) + ")";
  return text + ", " + grouped(run.step.runs) + (run.step.runs == 1 ? " run" : " runs");
}

std::string text_of_profile(const ByteUnit& unit, const MeasuredRun& run) {
  std::string text = run.source + ": peak ";
  text += run.planned_peak_bytes < 0 ? unit.text(run.observed_peak_bytes)
                                     : bytes_text(unit, run.observed_peak_bytes, run.planned_peak_bytes);
  return text + " · " + step_text(run);
}

// A line of dots, so that the planned curve can be seen below it where they are equal. A column of pixels shows the most bytes
// of its nodes; nodes without a call have none.
void draw_live_line(const Plot& plot, const std::vector<std::int64_t>& live) {
  const auto nodes = static_cast<NodeId>(live.size());
  const double end_of_step = plot.axis ? plot.axis->at(nodes) : nodes;
  float before = -1;
  for (int c = 0; c < static_cast<int>(plot.width()); ++c) {
    const float x = plot.x0 + static_cast<float>(c);
    if (nodes == 0 || plot.across_at(x) >= end_of_step) return;
    const auto [first, end] = plot.nodes_in_column(c, nodes);
    const std::int64_t bytes = *std::max_element(live.begin() + first, live.begin() + end);
    if (bytes < 0) continue;
    const float y = std::round(plot.y_of(static_cast<double>(bytes)));
    const float top = before < 0 ? y : std::min(before, y), bottom = before < 0 ? y : std::max(before, y);
    if (c % 6 < 3 || top != bottom)
      fill_box(x, std::max(top - 1, plot.y0), x + 1, std::min(bottom + 2, plot.y1), colours::kMeasured);
    before = y;
  }
}

// In the gaps of the line of the planned peak, so that both can be seen where they are equal.
void draw_peak(const Plot& plot, std::int64_t bytes) {
  const float y = std::round(plot.y_of(static_cast<double>(bytes)));
  if (y < plot.y0 || y >= plot.y1) return;
  for (float x = plot.x0 + 6; x < plot.x1; x += 9) fill_box(x, y, std::min(x + 3, plot.x1), y + 2, colours::kMeasured);
}

void diamond(ImVec2 at, float radius) {
  shapes()->AddQuadFilled(ImVec2(at.x, at.y - radius), ImVec2(at.x + radius, at.y), ImVec2(at.x, at.y + radius),
                          ImVec2(at.x - radius, at.y), to_imgui(colours::kMeasured));
}

}  // namespace

std::string measured_summary(const Session& session) {
  const Measurements& known = session.measurements();
  if (session.model() == nullptr || known.newest() == nullptr) return "";
  const PlanModel& model = *session.model();
  const ByteUnit unit = unit_of(model.plan());
  const MeasuredRun* run = known.of_plan(model);
  if (run == nullptr && known.newest()->plan == 0) return text_of_profile(unit, *known.newest());
  if (run == nullptr) return "measured: another plan, whose peak was " + unit.text(known.newest()->observed_peak_bytes);
  return "measured: peak " + bytes_text(unit, run->observed_peak_bytes, model.plan().peak_bytes) + " · most live " +
         bytes_text(unit, run->most_live, model.plan().lower_bound_bytes) + " · " + step_text(*run);
}

void draw_measured_bytes(const Plot& plot, const Session& session) {
  const std::string summary = measured_summary(session);
  if (summary.empty()) return;
  const MeasuredRun* run = session.measurements().of_plan(*session.model());
  if (run != nullptr) {
    draw_live_line(plot, run->live);
    draw_peak(plot, run->observed_peak_bytes);
  }
  const float left = plot.x0 + 50, width = std::min(text_width(TextSize::small, summary), plot.x1 - left - 24);
  const float x = plot.x1 - width, y = plot.y0 - 18;
  for (float dot = x - 22; dot < x - 6; dot += 6) fill_box(dot, y + 6, dot + 3, y + 9, colours::kMeasured);
  draw_text_cut(TextSize::small, x, y, width + 1, colours::kText, summary);
}

void draw_measured_points(const Plot& plot, const std::vector<MeasuredPoint>& points, std::vector<TradeoffMark>* marks) {
  for (const MeasuredPoint& p : points) {
    const float x = plot.x_of(static_cast<double>(p.observed_peak_bytes));
    const auto y_of_us = [&](double us) { return plot.y_of(us / p.keep_all_us); };
    const ImVec2 at(x, plot.y_of(p.ratio())),
        planned(plot.x_of(static_cast<double>(p.planned_peak_bytes)), plot.y_of(p.planned_ratio));
    shapes()->AddLine(planned, at, to_imgui(colours::kMeasured, 150));
    const float top = y_of_us(p.step.most_us), bottom = y_of_us(p.step.least_us);
    fill_box(std::round(x), std::max(top, plot.y0), std::round(x) + 1, std::min(bottom, plot.y1), colours::kMeasured);
    diamond(at, 5);
    marks->push_back({p.budget, p.observed_peak_bytes, p.ratio(), "measured"});
  }
}

float draw_measured_list(float x, float y, float width, const ByteUnit& unit, const std::vector<MeasuredPoint>& points) {
  if (points.empty()) return 0;
  const auto row = [&](float at, Colour colour, const std::string& peak, const std::string& measured,
                       const std::string& planned, const std::string& off) {
    draw_text(TextSize::small, x, at, colour, peak);
    const auto right = [&](float share, const std::string& text) {
      draw_text(TextSize::small, x + width * share - text_width(TextSize::small, text), at, colour, text);
    };
    right(0.54f, measured);
    right(0.77f, planned);
    right(1, off);
  };
  row(y, colours::kFaint, "peak", "measured", "planned", "off by");
  float at = y + 18;
  for (const MeasuredPoint& p : points) {
    row(at, colours::kText, unit.text(p.observed_peak_bytes), fmt::format("×{:.3f}", p.ratio()),
        fmt::format("×{:.3f}", p.planned_ratio), deviation_text(p.ratio(), p.planned_ratio));
    at += 16;
  }
  return at - y + 8;
}

}  // namespace tapedeck::viewer
