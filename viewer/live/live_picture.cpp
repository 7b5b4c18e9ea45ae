#include <tapedeck/viewer/live/live_picture.h>

#include <tapedeck/viewer/words/colours.h>
#include <tapedeck/viewer/words/ticks.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr double kLeastCalls = 16;

ImDrawList* list() { return ImGui::GetWindowDrawList(); }

// A call of the tape, or null if it is not kept any more, or was dropped.
const LiveOp* call_at(const LiveTape& tape, double index) {
  const auto& ops = tape.ops();
  const auto after = std::upper_bound(ops.begin(), ops.end(), index,
                                      [](double at, const LiveOp& op) { return at < static_cast<double>(op.index); });
  if (after == ops.begin()) return nullptr;
  const LiveOp& op = *(after - 1);
  return static_cast<double>(op.index) + 1 > index ? &op : nullptr;
}

}  // namespace

void LivePicture::fit_all() { follows_ = shows_all_ = true; }

void LivePicture::update_view(double begin, double end) {
  if (shows_all_) view_ = {begin, std::max(end, begin + kLeastCalls)};
  if (!shows_all_ && follows_) {
    const double size = view_.size();
    view_ = {std::max(begin, end - size), std::max(begin, end - size) + size};
  }
}

void LivePicture::navigate(const Plot& plot, double begin, double end) {
  const ImGuiIO& io = ImGui::GetIO();
  const Range before = view_;
  if (plot.contains(io.MousePos) && io.MouseWheel != 0) {
    if (io.KeyShift) {
      view_.pan(-0.1 * static_cast<double>(io.MouseWheel));
    } else {
      const double factor = std::pow(io.KeyCtrl ? 0.95 : 0.8, static_cast<double>(io.MouseWheel));
      const double at = follows_ ? 1 : static_cast<double>((io.MousePos.x - plot.x0) / plot.width());
      view_.zoom(at, factor, kLeastCalls);
    }
  }
  if (plot.contains(io.MousePos) && (io.MouseClicked[0] || io.MouseClicked[1] || io.MouseClicked[2])) dragging_ = true;
  if (!io.MouseDown[0] && !io.MouseDown[1] && !io.MouseDown[2]) dragging_ = false;
  if (dragging_ && io.MouseDelta.x != 0) view_.pan(-static_cast<double>(io.MouseDelta.x / plot.width()));
  if (view_.low == before.low && view_.high == before.high) return;
  const double size = std::min(view_.size(), std::max(end - begin, kLeastCalls));
  view_.low = std::clamp(view_.low, begin, std::max(begin, end - size));
  view_.high = view_.low + size;
  shows_all_ = size >= end - begin;
  follows_ = view_.high >= end;
  if (changed_) changed_();
}

void LivePicture::draw(float width, float height) {
  const LiveSource::View view(source_);
  const LiveTape& tape = view.tape();
  if (tape.points().empty()) {
    const std::string text = view.state() == LiveState::running ? "waiting for the first op…" : "the program has run no op";
    draw_text(TextSize::body, (width - text_width(TextSize::body, text)) / 2, height / 2 - 8, colours::kFaint, text);
    return;
  }
  const double begin = static_cast<double>(tape.points().front().index), end = static_cast<double>(tape.end());
  update_view(begin, end);
  const LivePoint seen = tape.extremes(view_.low, view_.high);
  const ByteUnit unit = tape.unit();
  const double top = std::max(1.0, static_cast<double>(std::max<std::int64_t>(seen.highest, 1)) * 1.15);
  const Plot plot = make_plot(70, 26, width - 10, height - 24, view_, {0, top});
  const std::string title = "bytes that all tensors hold, after each call of an op";
  draw_text(TextSize::small, std::max(150.0f, plot.x1 - text_width(TextSize::small, title)), 6, colours::kFaint, title);
  draw_plot_ground(plot);
  draw_byte_axis(plot, unit, "live bytes");
  draw_steps(plot, tape);
  draw_curve(plot, tape);
  draw_peak(plot, tape, unit);
  draw_calls_axis(plot);
  navigate(plot, begin, end);
  draw_hover(plot, tape);
}

// Each column of pixels is filled up to the lowest of its calls, and more lightly up to the highest, so that no peak is lost.
void LivePicture::draw_curve(const Plot& plot, const LiveTape& tape) const {
  const Colour strong = role_class_colour(RoleClass::saved);
  const int columns = static_cast<int>(plot.width());
  const double step = view_.size() / columns;
  for (int c = 0; c < columns; ++c) {
    const LivePoint p = tape.extremes(view_.low + c * step, view_.low + (c + 1) * step);
    if (p.highest < 0) continue;
    const float x = plot.x0 + static_cast<float>(c);
    const float low = std::max(std::round(plot.y_of(static_cast<double>(p.lowest))), plot.y0),
                high = std::max(std::round(plot.y_of(static_cast<double>(p.highest))), plot.y0);
    list()->AddRectFilled(ImVec2(x, low), ImVec2(x + 1, plot.y1), to_imgui(mixed(colours::kPlot, strong, 0.75)));
    list()->AddRectFilled(ImVec2(x, high), ImVec2(x + 1, std::max(low, high + 1)), to_imgui(strong));
  }
}

void LivePicture::draw_steps(const Plot& plot, const LiveTape& tape) const {
  const std::vector<LiveStep>& steps = tape.steps();
  const auto at = [&](double index) {
    return std::lower_bound(steps.begin(), steps.end(), index,
                            [](const LiveStep& s, double i) { return static_cast<double>(s.index) < i; });
  };
  const auto first = at(view_.low), last = at(view_.high);
  if (first == last || static_cast<double>(last - first) * 6 > static_cast<double>(plot.width()))
    return;  // too many to tell apart
  float label_from = plot.x0;
  for (auto s = first; s != last; ++s) {
    const float x = std::round(plot.x_of(static_cast<double>(s->index)));
    list()->AddRectFilled(ImVec2(x, plot.y0), ImVec2(x + 1, plot.y1), to_imgui(colours::kFaint, 110));
    const std::string label = "step " + grouped(static_cast<std::int64_t>(s->step));
    const float wide = text_width(TextSize::small, label);
    if (x < label_from || x + wide + 6 > plot.x1) continue;
    draw_text(TextSize::small, x + 4, plot.y0 + 2, colours::kFaint, label);
    label_from = x + wide + 20;
  }
}

void LivePicture::draw_peak(const Plot& plot, const LiveTape& tape, const ByteUnit& unit) const {
  const LivePoint peak = tape.peak();
  const auto index = static_cast<double>(peak.index) + 0.5;
  if (peak.highest < 0 || index < view_.low || index > view_.high) return;
  const float x = plot.x_of(index), y = plot.y_of(static_cast<double>(peak.highest));
  list()->AddCircleFilled(ImVec2(x, y), 5, to_imgui(colours::kOutline));
  list()->AddCircleFilled(ImVec2(x, y), 3.5f, to_imgui(colours::kPeak));
  std::string text = "peak " + unit.text(peak.highest);
  if (const LiveOp* op = call_at(tape, index))
    text += " at " + tape.text(op->op) + ", call " + grouped(static_cast<std::int64_t>(peak.index));
  const bool left = x + text_width(TextSize::small, text) + 20 > plot.x1;
  draw_plate(plot, left ? x - 10 : x + 10, std::max(y - 9, plot.y0 + 18), left, colours::kPeak, text);
}

void LivePicture::draw_calls_axis(const Plot& plot) const {
  const std::string what = "call";
  const float what_x = plot.x1 - text_width(TextSize::small, what);
  draw_text(TextSize::small, what_x, plot.y1 + 6, colours::kFaint, what);
  for (const Tick& tick : count_ticks(view_.low, view_.high, std::max(2, static_cast<int>(plot.width() / 90)))) {
    const float x = std::round(plot.x_of(tick.at)), wide = text_width(TextSize::small, tick.label);
    list()->AddRectFilled(ImVec2(x, plot.y1), ImVec2(x + 1, plot.y1 + 4), to_imgui(colours::kFaint));
    const float left = std::max(x - wide / 2, 2.0f);
    if (left + wide < what_x - 8) draw_text(TextSize::small, left, plot.y1 + 6, colours::kFaint, tick.label);
  }
}

void LivePicture::draw_hover(const Plot& plot, const LiveTape& tape) const {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!plot.contains(mouse) || dragging_) return;
  const double at = plot.across_at(mouse.x), step = view_.size() / static_cast<double>(plot.width());
  const LivePoint p = tape.extremes(at, at + step);
  if (p.highest < 0) return;
  list()->AddRectFilled(ImVec2(mouse.x, plot.y0), ImVec2(mouse.x + 1, plot.y1), to_imgui(colours::kHover, 130));
  ImGui::BeginTooltip();
  const LiveOp* op = call_at(tape, at);
  if (step < 1 && op != nullptr) {
    ImGui::TextUnformatted(("call " + grouped(static_cast<std::int64_t>(op->index)) + ": " + tape.text(op->op)).c_str());
    ImGui::TextUnformatted((tape.text(op->types) + "  " + tape.unit().readable_text(op->bytes)).c_str());
    if (op->path != 0) ImGui::TextDisabled("module %s", tape.text(op->path).c_str());
    if (const std::string site = site_text(tape, *op); !site.empty()) ImGui::TextDisabled("%s", site.c_str());
  } else {
    ImGui::TextUnformatted(("calls from " + grouped(static_cast<std::int64_t>(at))).c_str());
  }
  const std::string range = p.lowest == p.highest
                                ? tape.unit().exact_text(p.highest)
                                : tape.unit().readable_text(p.lowest) + " to " + tape.unit().exact_text(p.highest);
  ImGui::TextUnformatted((range + " live").c_str());
  ImGui::EndTooltip();
}

}  // namespace tapedeck::viewer
