#include <tapedeck/viewer/panels/measured.h>

#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

ImDrawList* list() { return ImGui::GetWindowDrawList(); }

void fill(float x0, float y0, float x1, float y1, Colour colour) {
  list()->AddRectFilled(ImVec2(x0, y0), ImVec2(x1, y1), to_imgui(colour));
}

std::string bytes_text(std::int64_t measured, std::int64_t planned) {
  return human_bytes(measured) + " (" + deviation_text(static_cast<double>(measured), static_cast<double>(planned)) + ")";
}

std::string step_text(const MeasuredRun& run) {
  std::string text = "step " + human_us(run.step.median_us);
  if (run.step.most_us > run.step.least_us)
    text += " (" + human_us(run.step.least_us) + " to " + human_us(run.step.most_us) + ")";
  return text + ", " + grouped(run.step.runs) + (run.step.runs == 1 ? " run" : " runs");
}

std::string text_of_profile(const MeasuredRun& run) {
  std::string text = run.source + ": peak ";
  text += run.planned_peak_bytes < 0 ? human_bytes(run.observed_peak_bytes)
                                     : bytes_text(run.observed_peak_bytes, run.planned_peak_bytes);
  return text + " · " + step_text(run);
}

// The most bytes among the nodes of a column of pixels; -1 if none of them had a call.
std::int64_t most_between(const std::vector<std::int64_t>& live, double from, double to) {
  const auto nodes = static_cast<std::int64_t>(live.size());
  const std::int64_t a = std::clamp<std::int64_t>(static_cast<std::int64_t>(from), 0, nodes);
  const std::int64_t b = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(to)), a, nodes);
  std::int64_t most = -1;
  for (std::int64_t n = a; n < b; ++n) most = std::max(most, live[static_cast<std::size_t>(n)]);
  return most;
}

// A line of dots, so that the planned curve can be seen below it where they are equal.
void draw_live_line(const Plot& plot, const std::vector<std::int64_t>& live) {
  const double nodes_per_pixel = plot.across.size() / static_cast<double>(plot.width());
  float before = -1;
  for (int c = 0; c < static_cast<int>(plot.width()); ++c) {
    const double from = plot.across.low + c * nodes_per_pixel;
    if (from >= static_cast<double>(live.size())) return;
    const std::int64_t bytes = most_between(live, from, from + nodes_per_pixel);
    if (bytes < 0) continue;
    const float x = plot.x0 + static_cast<float>(c), y = std::round(plot.y_of(static_cast<double>(bytes)));
    const float top = before < 0 ? y : std::min(before, y), bottom = before < 0 ? y : std::max(before, y);
    if (c % 6 < 3 || top != bottom)
      fill(x, std::max(top - 1, plot.y0), x + 1, std::min(bottom + 2, plot.y1), colours::kMeasured);
    before = y;
  }
}

// In the gaps of the line of the planned peak, so that both can be seen where they are equal.
void draw_peak(const Plot& plot, std::int64_t bytes) {
  const float y = std::round(plot.y_of(static_cast<double>(bytes)));
  if (y < plot.y0 || y >= plot.y1) return;
  for (float x = plot.x0 + 6; x < plot.x1; x += 9) fill(x, y, std::min(x + 3, plot.x1), y + 2, colours::kMeasured);
}

void diamond(ImVec2 at, float radius) {
  list()->AddQuadFilled(ImVec2(at.x, at.y - radius), ImVec2(at.x + radius, at.y), ImVec2(at.x, at.y + radius),
                        ImVec2(at.x - radius, at.y), to_imgui(colours::kMeasured));
}

}  // namespace

std::string measured_summary(const Session& session) {
  const Measurements& known = session.measurements();
  if (session.model() == nullptr || known.newest() == nullptr) return "";
  const PlanModel& model = *session.model();
  const MeasuredRun* run = known.of_plan(model);
  if (run == nullptr && known.newest()->plan == 0) return text_of_profile(*known.newest());
  if (run == nullptr) return "measured: another plan, whose peak was " + human_bytes(known.newest()->observed_peak_bytes);
  return "measured: peak " + bytes_text(run->observed_peak_bytes, model.plan().peak_bytes) + " · most live " +
         bytes_text(run->most_live, model.plan().lower_bound_bytes) + " · " + step_text(*run);
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
  for (float dot = x - 22; dot < x - 6; dot += 6) fill(dot, y + 6, dot + 3, y + 9, colours::kMeasured);
  draw_text_cut(TextSize::small, x, y, width + 1, colours::kText, summary);
}

void draw_measured_points(const Plot& plot, const std::vector<MeasuredPoint>& points, std::vector<TradeoffMark>* marks) {
  for (const MeasuredPoint& p : points) {
    const float x = plot.x_of(static_cast<double>(p.observed_peak_bytes));
    const auto y_of_us = [&](double us) { return plot.y_of(us / p.keep_all_us); };
    const ImVec2 at(x, plot.y_of(p.ratio())),
        planned(plot.x_of(static_cast<double>(p.planned_peak_bytes)), plot.y_of(p.planned_ratio));
    list()->AddLine(planned, at, to_imgui(colours::kMeasured, 150));
    const float top = y_of_us(p.step.most_us), bottom = y_of_us(p.step.least_us);
    fill(std::round(x), std::max(top, plot.y0), std::round(x) + 1, std::min(bottom, plot.y1), colours::kMeasured);
    diamond(at, 5);
    marks->push_back({p.budget, p.observed_peak_bytes, p.ratio(), "measured"});
  }
}

float draw_measured_list(float x, float y, float width, const std::vector<MeasuredPoint>& points) {
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
    row(at, colours::kText, human_bytes(p.observed_peak_bytes), fmt::format("×{:.3f}", p.ratio()),
        fmt::format("×{:.3f}", p.planned_ratio), deviation_text(p.ratio(), p.planned_ratio));
    at += 16;
  }
  return at - y + 8;
}

}  // namespace tapedeck::viewer
