// Draws the parts that all pictures share: text, axes, limits, legend and tooltips; and changes the view by wheel and drag.
// All places are in units of the canvas, and lines lie at whole units.
#include <tapedeck/viewer/panels/plot.h>

#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/workspace_parts.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/glossary.h>
#include <tapedeck/viewer/words/ticks.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/drawing/imgui_host.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

float text_height(TextSize size) { return font(size)->FontSize * ImGui::GetIO().FontGlobalScale; }

// Every text of a picture is drawn here, so that an export to a format with text knows it.
void draw_line(TextSize size, const ImVec2& at, Colour colour, const char* text, const char* end) {
  const int first = shapes()->IdxBuffer.Size;
  shapes()->AddText(font(size), text_height(size), at, to_imgui(colour), text, end);
  if (text_notes == nullptr || shapes()->IdxBuffer.Size == first) return;
  const float width = font(size)->CalcTextSizeA(text_height(size), 1e9f, 0, text, end).x;
  text_notes->push_back({shapes(), first, shapes()->IdxBuffer.Size, at, size, width, to_imgui(colour), {text, end}});
}

// A sentence that explains a layer of a plan.
std::string layer_sentence(ColourBy by, const std::string& name) {
  if (by == ColourBy::role) return explain_term(name);
  if (name == "others") return "All that has no colour of its own.";
  if (name == "no module") return "What no module makes, and whose name begins with no module.";
  if (name == "given from outside") return "What no node makes: parameters, state, inputs and constants.";
  return by == ColourBy::op ? "What nodes of the op " + name + " make, and their workspace."
                            : "What the nodes of the module " + name + " make, their workspace, and the module's parameters.";
}

// Draws text in the lines into which ImGui would break it.
void draw_wrapped(ImVec2 at, float width, const std::string& text) {
  const float height = text_height(TextSize::body);
  const float scale = height / font(TextSize::body)->FontSize;
  const char *from = text.c_str(), *end = from + text.size();
  while (from < end) {
    const char* paragraph = std::find(from, end, '\n');
    const char* stop =
        std::max(font(TextSize::body)->CalcWordWrapPositionA(scale, from, paragraph, width), std::min(from + 1, paragraph));
    draw_line(TextSize::body, at, colours::kText, from, stop);
    at.y += height;
    while (stop < paragraph && *stop == ' ') ++stop;
    from = stop == paragraph ? paragraph + 1 : stop;
  }
}

}  // namespace

Plot make_plot(float x0, float y0, float x1, float y1, const Range& across, const Range& up,
               std::shared_ptr<const TimeAxis> axis) {
  Plot plot;
  plot.axis = std::move(axis);
  plot.x0 = std::round(x0);
  plot.y0 = std::round(y0);
  plot.x1 = std::max(std::round(x1), plot.x0 + 1);
  plot.y1 = std::max(std::round(y1), plot.y0 + 1);
  plot.across = across;
  plot.up = up;
  if (!(plot.across.size() > 0)) plot.across.high = plot.across.low + 1;
  if (!(plot.up.size() > 0)) plot.up.high = plot.up.low + 1;
  return plot;
}

float text_width(TextSize size, const std::string& text) {
  return font(size)->CalcTextSizeA(text_height(size), 1e9f, 0, text.c_str()).x;
}

void draw_text(TextSize size, float x, float y, Colour colour, const std::string& text) {
  draw_line(size, ImVec2(std::round(x), std::round(y)), colour, text.c_str(), text.c_str() + text.size());
}

void draw_text_cut(TextSize size, float x, float y, float width, Colour colour, const std::string& text) {
  std::string shown = text;
  while (!shown.empty() && text_width(size, shown == text ? shown : shown + "…") > width) {
    // Removes whole characters of UTF-8.
    do shown.pop_back();
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xc0) == 0xc0);
  }
  if (!shown.empty()) draw_text(size, x, y, colour, shown == text ? shown : shown + "…");
}

bool draw_button(float x, float y, const std::string& text) {
  const ImVec2 low(std::round(x), std::round(y)), margin = ImGui::GetStyle().FramePadding;
  const ImVec2 size(text_width(TextSize::body, text) + 2 * margin.x, text_height(TextSize::body) + 2 * margin.y);
  ImGui::SetCursorScreenPos(low);
  const bool pressed = ImGui::InvisibleButton(text.c_str(), size);
  const ImGuiCol colour = ImGui::IsItemActive()    ? ImGuiCol_ButtonActive
                          : ImGui::IsItemHovered() ? ImGuiCol_ButtonHovered
                                                   : ImGuiCol_Button;
  shapes()->AddRectFilled(low, ImVec2(low.x + size.x, low.y + size.y), ImGui::GetColorU32(colour));
  draw_text(TextSize::body, low.x + margin.x, low.y + margin.y, colours::kText, text);
  return pressed;
}

void draw_plate(const Plot& plot, float x, float y, bool right_aligned, Colour colour, const std::string& text) {
  const float w = text_width(TextSize::small, text) + 8, h = text_height(TextSize::small) + 4;
  float left = right_aligned ? x - w : x;
  left = std::round(std::clamp(left, plot.x0, std::max(plot.x0, plot.x1 - w)));
  const float top = std::round(std::clamp(y, plot.y0, std::max(plot.y0, plot.y1 - h)));
  shapes()->AddRectFilled(ImVec2(left, top), ImVec2(left + w, top + h), to_imgui(colours::kPlot, 215));
  draw_text(TextSize::small, left + 4, top + 2, colour, text);
}

void draw_hatch(const ImVec2& low, const ImVec2& high, Colour colour) {
  shapes()->PushClipRect(low, high, true);
  const float h = high.y - low.y;
  const float phase = std::fmod(low.x + low.y, 8.0f);  // aligns the stripes of neighbouring rectangles
  int stripes = 0;
  for (float x = low.x - h - phase; x < high.x && stripes < 400; x += 8, ++stripes)
    shapes()->AddLine(ImVec2(x, high.y), ImVec2(x + h, low.y), to_imgui(shaded(colour, 0.6)), 1.5f);
  shapes()->PopClipRect();
}

void draw_plot_ground(const Plot& plot) {
  shapes()->AddRectFilled(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), to_imgui(colours::kPlot));
}

void draw_byte_axis(const Plot& plot, const ByteUnit& unit, const char* what) {
  const int most = std::max(2, static_cast<int>(plot.height() / 46));
  const ByteAxis axis = byte_ticks(plot.up.low, plot.up.high, unit, most);
  for (const Tick& tick : axis.ticks) {
    const float y = std::round(plot.y_of(tick.at));
    if (y < plot.y0 || y > plot.y1) continue;
    shapes()->AddRectFilled(ImVec2(plot.x0, y), ImVec2(plot.x1, y + 1), to_imgui(colours::kGrid));
    shapes()->AddRectFilled(ImVec2(plot.x0 - 4, y), ImVec2(plot.x0, y + 1), to_imgui(colours::kFaint));
    draw_text(TextSize::small, plot.x0 - 8 - text_width(TextSize::small, tick.label), y - text_height(TextSize::small) / 2,
              colours::kFaint, tick.label);
  }
  draw_text(TextSize::small, plot.x0 - 52, plot.y0 - 18, colours::kFaint, std::string(what) + " (" + axis.unit + ")");
  shapes()->AddRectFilled(ImVec2(plot.x0 - 1, plot.y0), ImVec2(plot.x0, plot.y1), to_imgui(colours::kFrame));
}

namespace {

// A run of nodes of one phase on the strip below a plot; clones form runs of their own.
struct PhaseRun {
  int kind;
  float x0, x1;
};

constexpr int kCloneKind = static_cast<int>(PlanModel::kClonePhase);

// The runs in view, at whole units. Where several runs begin at one unit, the last of them is seen. Cost: O(width), however
// many runs there are.
std::vector<PhaseRun> phase_runs(const Plot& plot, const Graph& graph) {
  const auto kind_of = [&](NodeId n) {
    const Origin& origin = graph.nodes[n].origin;
    return origin.clone ? kCloneKind : static_cast<int>(origin.phase);
  };
  std::vector<PhaseRun> runs;
  const NodeId nodes = graph.node_count(), first = std::clamp(static_cast<NodeId>(plot.node_of(plot.across.low)), 0, nodes);
  if (first >= nodes) return runs;
  const float begin = std::max(std::round(plot.x_of(first)), plot.x0);
  const float end = std::min(std::max(std::round(plot.x_of(nodes)), std::round(plot.x_of(nodes - 1)) + 1), plot.x1);
  NodeId n = first;
  for (float x = begin; x < end; ++x) {
    // The last node that begins at or before this unit.
    n = std::clamp(static_cast<NodeId>(plot.node_at(x + 0.5f)), n, nodes - 1);
    while (n + 1 < nodes && std::round(plot.x_of(n + 1)) <= x) ++n;
    while (n > first && std::round(plot.x_of(n)) > x) --n;
    const int kind = kind_of(n);
    if (runs.empty() || runs.back().kind != kind) runs.push_back({kind, x, x});
    runs.back().x1 = x + 1;
  }
  return runs;
}

const char* kind_name(int kind) { return kind == kCloneKind ? "recompute" : phase_name(static_cast<Phase>(kind)); }

void phase_tooltip(const Plot& plot, const PhaseRun& run, NodeId nodes) {
  const auto first = std::clamp(static_cast<NodeId>(plot.node_at(run.x0 + 0.5f)), 0, nodes - 1),
             last = std::clamp(static_cast<NodeId>(plot.node_at(run.x1 - 0.5f)), first, nodes - 1);
  const std::string where = first == last ? "node " + grouped(first) : "nodes " + grouped(first) + " to " + grouped(last);
  explained_tooltip(std::string(kind_name(run.kind)) + ", " + where, explain_term(std::string("phase ") + kind_name(run.kind)),
                    "");
}

}  // namespace

void draw_phase_legend(const Plot& plot, const PlanModel& model) {
  constexpr float kGap = 14, kSquare = 11;
  const auto& present = model.phases();
  const std::string title = "strip:";
  float width = text_width(TextSize::small, title);
  for (int kind = 0; kind <= kCloneKind; ++kind)
    if (present[static_cast<std::size_t>(kind)]) width += kGap + kSquare + 4 + text_width(TextSize::small, kind_name(kind));
  const float y = plot.y0 - 18;
  float x = plot.x1 - width;
  if (x < plot.x0 + 60) return;
  draw_text(TextSize::small, x, y, colours::kFaint, title);
  x += text_width(TextSize::small, title);
  for (int kind = 0; kind <= kCloneKind; ++kind) {
    if (!present[static_cast<std::size_t>(kind)]) continue;
    const std::string name = kind_name(kind);
    const ImVec2 low(std::round(x + kGap), std::round(y + 1));
    shapes()->AddRectFilled(low, ImVec2(low.x + kSquare, low.y + kSquare), to_imgui(phase_colour(kind)));
    draw_text(TextSize::small, low.x + kSquare + 4, y, colours::kFaint, name);
    const float item = kSquare + 4 + text_width(TextSize::small, name);
    if (is_under_mouse(low.x, y, item)) explained_tooltip(name, explain_term("phase " + name), "");
    x += kGap + item;
  }
}

void draw_time_axis(const Plot& plot, const PlanModel& model) {
  const NodeId nodes = model.graph().node_count();
  const float strip = plot.y1 + 3;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (const PhaseRun& run : phase_runs(plot, model.graph())) {
    shapes()->AddRectFilled(ImVec2(run.x0, strip), ImVec2(run.x1, strip + 14), to_imgui(phase_colour(run.kind)));
    if (mouse.x >= run.x0 && mouse.x < run.x1 && mouse.y >= strip && mouse.y < strip + 14) phase_tooltip(plot, run, nodes);
    const char* name = kind_name(run.kind);
    const float wide = text_width(TextSize::small, name);
    if (wide + 8 < run.x1 - run.x0) draw_text(TextSize::small, (run.x0 + run.x1 - wide) / 2, strip + 1, colours::kText, name);
  }
  const int most = std::max(2, static_cast<int>(plot.width() / 70));
  std::string what = "node";
  std::vector<Tick> ticks;
  if (plot.axis && plot.axis->unit() == TimeUnit::us) {
    TimeTicks times = time_ticks(plot.across.low, plot.across.high, plot.axis->at(nodes), most);
    what = times.unit + ", " + source_of_costs(model.plan());
    ticks = std::move(times.ticks);
  } else {
    ticks = count_ticks(plot.across.low, plot.across.high, most);
  }
  const float what_x = plot.x1 - text_width(TextSize::small, what);
  draw_text(TextSize::small, what_x, strip + 21, colours::kFaint, what);
  for (const Tick& tick : ticks) {
    const auto share = static_cast<float>((tick.at - plot.across.low) / plot.across.size());
    const float x = std::round(plot.x0 + share * plot.width()), w = text_width(TextSize::small, tick.label);
    shapes()->AddRectFilled(ImVec2(x, strip + 14), ImVec2(x + 1, strip + 18), to_imgui(colours::kFaint));
    const float left = std::max(x - w / 2, 2.0f);
    if (left + w < what_x - 8) draw_text(TextSize::small, left, strip + 21, colours::kFaint, tick.label);
  }
}

void draw_limits(const Plot& plot, const Plan& plan, const ByteUnit& unit, std::int64_t budget_bytes) {
  const auto line = [&](std::int64_t bytes, Colour colour) {
    const float y = std::round(plot.y_of(static_cast<double>(bytes)));
    for (float x = plot.x0; x < plot.x1 && y >= plot.y0 && y < plot.y1; x += 9)
      shapes()->AddRectFilled(ImVec2(x, y), ImVec2(std::min(x + 6, plot.x1), y + 1), to_imgui(colour));
    return y;
  };
  const float height = text_height(TextSize::small) + 4;
  const auto label = [&](float y, bool below, bool right, Colour colour, const std::string& text) {
    if (y < plot.y0 || y >= plot.y1) return;
    const float above = y - height - 1;
    draw_plate(plot, right ? plot.x1 - 4 : plot.x0 + 4, below || above < plot.y0 ? y + 3 : above, right, colour, text);
  };
  // The lines come first, so that no line crosses a label. The label of the peak goes below its line if the line of the budget
  // is close above.
  const float peak = line(plan.peak_bytes, colours::kPeak);
  const std::int64_t keep_all = plan.keep_all_peak_bytes;
  const float ghost = keep_all > plan.peak_bytes ? line(keep_all, colours::kFaint) : -1e9f;
  const float budget = budget_bytes >= 0 ? line(budget_bytes, colours::kBudget) : -1e9f;
  if (ghost < peak - height - 4) label(ghost, false, true, colours::kFaint, "everything kept " + unit.text(keep_all));
  label(peak, budget < peak && budget > peak - height - 4, true, colours::kPeak, "peak " + unit.text(plan.peak_bytes));
  if (budget_bytes >= 0) label(budget, false, false, colours::kBudget, "budget " + unit.text(budget_bytes));
}

bool is_under_mouse(float x, float y, float width) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  return mouse.x >= x && mouse.x < x + width && mouse.y >= y && mouse.y < y + 16;
}

namespace {

constexpr float kLegendRow = 17;

float legend_item_width(const PlanLayer& layer) { return 16 + text_width(TextSize::small, layer.name) + 14; }

// Calls `place` with each layer and the place of its upper left corner; returns the height of all rows.
template <class Place>
float lay_out_legend(float x, float y, float width, const PlanColours& colours, Place&& place) {
  float cx = x, cy = y;
  for (const PlanLayer& layer : colours.layers()) {
    const float item = legend_item_width(layer);
    if (cx + item > x + width && cx > x) {
      cx = x;
      cy += kLegendRow;
    }
    place(layer, cx, cy);
    cx += item;
  }
  return cy - y + kLegendRow;
}

void draw_legend_item(float x, float y, const PlanColours& colours, const PlanLayer& layer) {
  const ImVec2 low(std::round(x), std::round(y + 1)), high(low.x + 11, low.y + 11);
  const Colour colour = colours.colour(layer);
  shapes()->AddRectFilled(low, high, to_imgui(colour));
  if (colours.hatched(layer)) {
    shapes()->PushClipRect(low, high, true);
    for (float d = -11; d < 11; d += 4)
      shapes()->AddLine(ImVec2(low.x + d, high.y), ImVec2(low.x + d + 11, low.y), to_imgui(shaded(colour, 0.55)));
    shapes()->PopClipRect();
  }
  draw_text(TextSize::small, x + 16, y, colours::kText, layer.name);
  if (is_under_mouse(x, y, legend_item_width(layer) - 6))
    explained_tooltip(layer.name, layer_sentence(colours.by(), layer.name), "");
}

}  // namespace

float draw_legend(float x, float y, float width, const PlanColours& colours) {
  return lay_out_legend(x, y, width, colours,
                        [&](const PlanLayer& layer, float cx, float cy) { draw_legend_item(cx, cy, colours, layer); });
}

float legend_height(float width, const PlanColours& colours) {
  return lay_out_legend(0, 0, width, colours, [](const PlanLayer&, float, float) {});
}

RegionWay draw_region_way(const RegionPlace& place, float y, float width) {
  RegionWay way;
  way.height = 28;
  float x = 12;
  const auto button = [&](const std::string& text) {
    const float wide = text_width(TextSize::body, text) + 2 * ImGui::GetStyle().FramePadding.x;
    const bool is_pressed = x + wide < width && draw_button(x, y, text);
    x += wide + 8;
    return is_pressed;
  };
  if (button("← the step")) way.leaves_to = 0;
  for (std::size_t i = 0; i + 1 < place.names.size(); ++i)
    if (button("← " + place.names[i])) way.leaves_to = i + 1;
  draw_text_cut(TextSize::title, x, y + 3, width - x - 12, colours::kText, place.names.back());
  x += text_width(TextSize::title, place.names.back()) + 16;
  const Node& node = place.around->graph().nodes[static_cast<std::size_t>(place.node)];
  for (int region = 0; region < node.n_regions; ++region)
    if (region != place.path.back().region && button(region_title(node, region))) way.region = region;
  return way;
}

std::string plan_summary(const Plan& plan, const ByteUnit& unit) {
  std::string text = "peak " + unit.text(plan.peak_bytes) + " · lower bound " + unit.text(plan.lower_bound_bytes);
  if (plan.budget_bytes >= 0) text += " · budget " + unit.text(plan.budget_bytes);
  text += " · " + grouped(plan.nodes) + " nodes";
  if (plan.recomputed_nodes > 0) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.3f", plan.recompute_cost_ratio());
    text += ", " + grouped(plan.recomputed_nodes) + " recomputed · cost ×" + ratio;
  }
  return text;
}

void draw_solving(const Plot& plot, const Session& session) {
  if (!session.solving()) return;
  const std::string share = " " + std::to_string(static_cast<int>(session.progress() * 100)) + " %";
  if (session.planning() == Planning::improving)
    return draw_plate(plot, plot.x0 + 6, plot.y1 - 24, false, colours::kHover, "improving…" + share);
  shapes()->AddRectFilled(ImVec2(plot.x0, plot.y0), ImVec2(plot.x1, plot.y1), to_imgui(colours::kCanvas, 130));
  const std::string text = "planning…" + share;
  draw_plate(plot, (plot.x0 + plot.x1 - text_width(TextSize::small, text)) / 2, (plot.y0 + plot.y1) / 2, false, colours::kHover,
             text);
}

float draw_infeasible(float x, float y, float width, const Plan& plan) {
  if (plan.feasible) return 0;
  const std::string text = "No plan fits this budget; shown is the best found.\n" + grouped_numbers(plan.infeasible_reason);
  const float wrap = std::max(width - 16, 20.0f);
  const ImVec2 size = font(TextSize::body)->CalcTextSizeA(text_height(TextSize::body), 1e9f, wrap, text.c_str());
  const ImVec2 low(std::round(x), std::round(y)), high(low.x + width, std::round(low.y + size.y + 12));
  shapes()->AddRectFilled(low, high, to_imgui(colours::kProblemGround));
  shapes()->AddRect(low, high, to_imgui(colours::kProblem));
  draw_wrapped(ImVec2(low.x + 8, low.y + 6), wrap, text);
  return high.y - low.y + 6;
}

void move_session_view(Session& session, ViewMove move) {
  constexpr double kZoomIn = 0.8, kZoomOut = 1.25, kPan = 0.1;
  switch (move) {
    case ViewMove::back:
      return session.view_back();
    case ViewMove::forward:
      return session.view_forward();
    case ViewMove::fit_all:
      return session.fit_all();
    case ViewMove::fit_selection:
      return session.fit_selection();
    case ViewMove::zoom_in:
      return session.zoom(kZoomIn, 1);
    case ViewMove::zoom_out:
      return session.zoom(kZoomOut, 1);
    case ViewMove::left:
      return session.pan(-kPan, 0);
    case ViewMove::right:
      return session.pan(kPan, 0);
    case ViewMove::up:
      return session.pan(0, kPan);
    case ViewMove::down:
      return session.pan(0, -kPan);
  }
}

bool BudgetHandle::update(const Plot& plot, Session& session) {
  constexpr float kReach = 4;
  const ImGuiIO& io = ImGui::GetIO();
  const Plan& plan = session.model()->plan();
  const std::int64_t bytes = session.asked_budget() >= 0 ? session.asked_budget() : plan.peak_bytes;
  const bool on_line = plot.contains(io.MousePos) && std::abs(io.MousePos.y - plot.y_of(static_cast<double>(bytes))) <= kReach;
  if (io.MouseClicked[0]) held_ = on_line;
  if (!io.MouseDown[0]) held_ = false;
  if (!held_ && (!on_line || io.MouseDown[0])) return false;
  ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
  session.hover(kNone);
  if (held_) {
    const double at = plot.up.low + static_cast<double>((plot.y1 - io.MousePos.y) / plot.height()) * plot.up.size();
    const std::int64_t wanted =
        std::clamp<std::int64_t>(std::llround(std::max(at, 0.0)), 0, std::max(plan.keep_all_peak_bytes, plan.peak_bytes));
    if (wanted != session.asked_budget()) session.ask_budget(wanted);
  } else {
    const bool is_budget = session.asked_budget() >= 0;
    explained_tooltip((is_budget ? "budget " : "peak ") + unit_of(plan).exact_text(bytes),
                      explain_term(is_budget ? "budget" : "peak"), "Drag to change the budget");
  }
  return true;
}

void explained_tooltip(const std::string& title, const std::string& sentence, const std::string& action) {
  ImGui::BeginTooltip();
  ImGui::TextUnformatted(title.c_str());
  ImGui::PushTextWrapPos(380);
  ImGui::TextUnformatted(sentence.c_str());
  ImGui::PopTextWrapPos();
  if (!action.empty()) ImGui::TextDisabled("%s", action.c_str());
  ImGui::EndTooltip();
}

void summary_tooltip() {
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(460);
  for (const char* term : {"peak", "lower bound", "floor", "budget", "nodes", "recomputed", "recompute", "units"}) {
    const std::string name = term == std::string_view("recompute") ? "cost" : term;
    ImGui::TextUnformatted((name + ": " + explain_term(term)).c_str());
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void value_tooltip(const PlanModel& model, ValueId v, const ByteUnit& unit) {
  if (!model.is_complete()) return ImGui::SetTooltip("%s", model.name_of(v).c_str());
  const ValueFacts facts = explain_value(model, v);
  ImGui::BeginTooltip();
  ImGui::PushFont(font(TextSize::title));
  ImGui::TextUnformatted(facts.name.c_str());
  ImGui::PopFont();
  ImGui::TextUnformatted((facts.op + "  " + facts.type).c_str());
  ImGui::TextUnformatted(unit.exact_text(facts.bytes).c_str());
  ImGui::TextDisabled("%s, %s", role_class_name(facts.role), facts.lifetime.c_str());
  ImGui::TextDisabled("%s", facts.place.c_str());
  if (!facts.module.empty()) ImGui::TextDisabled("module %s", facts.module.c_str());
  ImGui::PushTextWrapPos(380);
  ImGui::TextUnformatted(facts.reason.c_str());
  ImGui::TextUnformatted(facts.decision.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

namespace {

// Of the workspace of a loop or a branch: its parts.
void region_workspace_tooltip(const PlanModel& model, const PlanRect& shown, const ByteUnit& unit, const std::string& action) {
  std::string parts;
  for (const WorkspacePart& part : workspace_parts(model, shown.node, kNone, unit))
    parts += (parts.empty() ? "" : ", ") + part.name + " " + unit.readable_text(part.bytes);
  explained_tooltip("The workspace of " + node_title(model.graph(), shown.node) + ", " + unit.exact_text(shown.bytes),
                    "It is held only while the node runs. In it lie: " + parts + ".", action);
}

}  // namespace

void rect_tooltip(const PlanModel& model, const LodRect& rect, const ByteUnit& unit, const std::string& action) {
  const PlanRect& shown = model.rects()[static_cast<std::size_t>(rect.rect)];
  if (rect.count > 1)
    ImGui::SetTooltip("%d values that are drawn as one, %s. Zoom in to see them apart.", rect.count,
                      unit.exact_text(rect.bytes).c_str());
  else if (shown.value != kNone)
    value_tooltip(model, shown.value, unit);
  else if (model.graph().nodes[static_cast<std::size_t>(shown.node)].n_regions > 0)
    region_workspace_tooltip(model, shown, unit, action);
  else
    ImGui::SetTooltip("The workspace of %s, %s. It is held only while the node runs.",
                      node_title(model.graph(), shown.node).c_str(), unit.exact_text(shown.bytes).c_str());
}

void node_tooltip(const PlanModel& model, const PlanColours& colours, NodeId n) {
  ImGui::BeginTooltip();
  ImGui::PushFont(font(TextSize::title));
  ImGui::TextUnformatted(node_title(model.graph(), n).c_str());
  ImGui::PopFont();
  const ByteUnit unit = unit_of(model.plan());
  ImGui::Text("%s live", unit.exact_text(model.curve()[n]).c_str());
  if (model.is_complete()) ImGui::TextUnformatted(node_time_text(model, n).c_str());
  for (const PlanLayer& layer : colours.layers()) {
    const std::int64_t bytes = (*layer.curve)[static_cast<std::size_t>(n)];
    if (bytes > 0) ImGui::TextDisabled("%s  %s", layer.name.c_str(), unit.readable_text(bytes).c_str());
  }
  ImGui::Separator();
  for (const PlanRect& rect : model.alive(n, 6)) {
    const std::string name = rect.value == kNone ? std::string("workspace") : model.name_of(rect.value);
    ImGui::Text("%s  %s", unit.readable_text(rect.bytes).c_str(), name.c_str());
  }
  ImGui::EndTooltip();
}

bool Navigation::wheel(const Plot& plot, PlanView* view, bool has_addresses) const {
  const ImGuiIO& io = ImGui::GetIO();
  float steps = io.MouseWheel;
  if (!plot.contains(io.MousePos) || (steps == 0 && io.MouseWheelH == 0)) return false;
  if (io.MouseWheelH != 0 && !io.KeyAlt) {
    view->time.pan(-0.1 * static_cast<double>(io.MouseWheelH));
    return true;
  }
  if (steps == 0) steps = io.MouseWheelH;  // some systems report Alt and the wheel as a horizontal wheel
  const double factor = std::pow(io.KeyCtrl ? 0.95 : 0.8, static_cast<double>(steps));
  if (io.KeyShift) {
    view->time.pan(-0.1 * static_cast<double>(steps));
  } else if (io.KeyAlt && has_addresses) {
    view->address.zoom(1 - static_cast<double>((io.MousePos.y - plot.y0) / plot.height()), factor, 64);
  } else {
    const double least = plot.axis ? plot.axis->least_size() : 1;
    view->time.zoom(static_cast<double>((io.MousePos.x - plot.x0) / plot.width()), factor, least);
  }
  return true;
}

bool Navigation::drag(const Plot& plot, PlanView* view, bool has_addresses) {
  const ImGuiIO& io = ImGui::GetIO();
  clicked = double_clicked = selecting = false;
  for (int button = 0; button < 3; ++button) {
    if (io.MouseClicked[button] && plot.contains(io.MousePos)) {
      pressed_ = true;
      dragging = false;
      by_left_ = button == 0;
      if (by_left_) selected_from = plot.across_at(io.MousePos.x);
      double_clicked = button == 0 && io.MouseDoubleClicked[0];
    }
  }
  if (!pressed_) return false;
  const bool held = io.MouseDown[0] || io.MouseDown[1] || io.MouseDown[2];
  for (int button = 0; button < 3; ++button)
    if (io.MouseDown[button] && io.MouseDragMaxDistanceSqr[button] > 16) dragging = true;
  if (!held) {
    clicked = !dragging && io.MouseReleased[0];
    pressed_ = dragging = false;
    return false;
  }
  selecting = dragging && by_left_ && left_ == LeftDrag::selects;
  if (!dragging || selecting || (io.MouseDelta.x == 0 && io.MouseDelta.y == 0)) return false;
  view->time.pan(-static_cast<double>(io.MouseDelta.x / plot.width()));
  if (has_addresses) view->address.pan(static_cast<double>(io.MouseDelta.y / plot.height()));
  return true;
}

void Navigation::note_cursor(const Plot& plot, Session& session) const {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (plot.contains(mouse))
    session.cursor = {this, plot.across_at(mouse.x)};
  else if (session.cursor.picture == this)
    session.cursor = {};
}

void Navigation::update(const Plot& plot, Session& session, bool has_addresses) {
  PlanView view = session.view;
  const bool was_dragging = dragging;
  const bool wheeled = wheel(plot, &view, has_addresses), dragged = drag(plot, &view, has_addresses);
  note_cursor(plot, session);
  if (was_dragging && !dragging) session.end_gesture();
  if (!wheeled && !dragged) return;
  session.view = view;
  session.view_changed(dragged ? Gesture::drag : Gesture::wheel);
}

bool Navigation::update(const Plot& plot, PlanView* view, bool has_addresses) {
  const bool wheeled = wheel(plot, view, has_addresses), dragged = drag(plot, view, has_addresses);
  return wheeled || dragged;
}

bool PicturePanel::draw_nothing(float width, float height) const {
  if (session_.model() != nullptr) return false;
  std::string text = "Drop a .tape or .graph file here, or press Ctrl+O";
  if (!session_.opening().empty())
    text = "opening " + session_.opening() + "…";
  else if (session_.document() != nullptr)
    text = session_.solving() ? "planning…" : "no plan";
  draw_text(TextSize::body, (width - text_width(TextSize::body, text)) / 2, height / 2 - 8, colours::kFaint, text);
  return true;
}

}  // namespace tapedeck::viewer
