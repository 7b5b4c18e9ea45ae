// Places and draws the box of a marked range. Its columns are as wide as their texts.
//
//     beside            |   ##+-----+      |        the range (##) and its box; at the right end of the plot the box stands
//     left without its rows  | ######+---+      |        in a narrow picture above         +----------------------+
//                   |####################  |        where the range takes up nearly all of the plot
#include <tapedeck/viewer/panels/range_box.h>

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tapedeck::viewer {

namespace {

constexpr float kRangeLine = 15, kRangeMargin = 8, kRangeGap = 8;
constexpr float kColumnGap = 14;
constexpr float kAxisTitle = 20;   // the height of the titles above the axis
constexpr float kLeastPlot = 110;  // the height that a box with rows leaves to the plot below it

std::string signed_bytes(const ByteUnit& unit, std::int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + unit.text(std::llabs(bytes));
}

std::string counted(const ByteUnit& unit, std::int64_t bytes, std::int64_t count) {
  return count == 0 ? "-" : unit.text(bytes) + " (" + grouped(count) + ")";
}

std::vector<std::string> row(const std::string& name, const ByteUnit& unit, const RangeBytes& bytes) {
  return {name, unit.text(bytes.at_first), unit.text(bytes.at_last), counted(unit, bytes.born, bytes.born_count),
          counted(unit, bytes.died, bytes.died_count)};
}

std::string time_line(const Plan& plan, const RangeTotals& totals) {
  if (!(totals.step_us > 0)) return "no node of the step takes any time by the cost model";
  return "time " + human_us(totals.us) + ", " + percent(totals.us / totals.step_us) + " of the step, " + source_of_costs(plan);
}

// The widths of the columns, with the gaps between them.
std::vector<float> column_widths(const std::vector<std::vector<std::string>>& rows) {
  std::vector<float> widths;
  for (const std::vector<std::string>& cells : rows)
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (widths.size() <= c) widths.push_back(0);
      widths[c] = std::max(widths[c], text_width(TextSize::small, cells[c]) + (c == 0 ? 0 : kColumnGap));
    }
  return widths;
}

void measure(RangeBox* box) {
  float width = 0;
  for (const float column : column_widths(box->text.rows)) width += column;
  for (const std::string& line : box->text.lines) width = std::max(width, text_width(TextSize::small, line));
  box->width = std::ceil(width) + 2 * kRangeMargin;
  box->height = static_cast<float>(box->text.lines.size() + box->text.rows.size()) * kRangeLine + 2 * kRangeMargin;
}

struct Ends {
  float x0, x1;
};
Ends ends_of(const Plot& plot, const NodeRange& range) {
  return {std::clamp(std::round(plot.x_of(range.first)), plot.x0, plot.x1),
          std::clamp(std::round(plot.x_of(range.last + 1)), plot.x0, plot.x1)};
}

// The right side where there is room on both.
bool place_beside(const Plot& plot, const Ends& ends, RangeBox* box) {
  if (box->height + 4 > plot.height() + kTimeAxisHeight) return false;
  if (ends.x1 + kRangeGap + box->width <= plot.x1)
    box->left = ends.x1 + kRangeGap;
  else if (ends.x0 - kRangeGap - box->width >= plot.x0)
    box->left = ends.x0 - kRangeGap - box->width;
  else
    return false;
  box->top = plot.y0 + 4;
  return true;
}

void draw_band(const Plot& plot, const Ends& ends) {
  shapes()->AddRectFilled(ImVec2(ends.x0, plot.y0), ImVec2(ends.x1, plot.y1), to_imgui(colours::kSelect, 40));
  for (const float x : {ends.x0, ends.x1})
    shapes()->AddRectFilled(ImVec2(x, plot.y0), ImVec2(x + 1, plot.y1), to_imgui(colours::kSelect));
}

void draw_rows(const RangeBox& box, float y) {
  const std::vector<float> widths = column_widths(box.text.rows);
  for (std::size_t r = 0; r < box.text.rows.size(); ++r, y += kRangeLine) {
    float right = box.left + kRangeMargin;
    for (std::size_t c = 0; c < box.text.rows[r].size(); ++c) {
      const std::string& cell = box.text.rows[r][c];
      right += widths[c];
      draw_text(TextSize::small, c == 0 ? box.left + kRangeMargin : right - text_width(TextSize::small, cell), y,
                r == 0 ? colours::kFaint : colours::kText, cell);
    }
  }
}

}  // namespace

RangeText range_text(const PlanModel& model, const RangeTotals& totals) {
  const ByteUnit unit = unit_of(model.plan());
  const NodeRange& range = totals.range;
  RangeText text;
  text.lines = {"nodes " + grouped(range.first) + " to " + grouped(range.last) + " (" + grouped(range.last - range.first + 1) +
                    "): " + signed_bytes(unit, totals.all.at_last - totals.all.at_first),
                time_line(model.plan(), totals), "most " + unit.text(totals.most) + " at node " + grouped(totals.most_at),
                "least " + unit.text(totals.least) + " at node " + grouped(totals.least_at)};
  text.rows = {{"role", "at first", "at last", "born", "died"}, row("all", unit, totals.all)};
  for (int i = 0; i < kRoleClassCount; ++i) {
    const auto role = static_cast<RoleClass>(i);
    const RangeBytes& bytes = totals.of(role);
    if (bytes.at_first != 0 || bytes.at_last != 0 || bytes.born_count != 0 || bytes.died_count != 0)
      text.rows.push_back(row(role_class_name(role), unit, bytes));
  }
  return text;
}

RangeBox place_range_box(const Plot& plot, float width, const PlanModel& model, const RangeTotals& totals) {
  RangeBox box;
  box.text = range_text(model, totals);
  const Ends ends = ends_of(plot, totals.range);
  measure(&box);
  if (place_beside(plot, ends, &box)) return box;
  RangeBox short_box = box;
  short_box.text.rows.clear();
  measure(&short_box);
  if (place_beside(plot, ends, &short_box)) return short_box;
  const bool has_room = plot.height() - box.height - kRangeGap >= kLeastPlot && box.width <= width - 2 * kRangeGap;
  RangeBox above = has_room ? box : short_box;
  above.left = std::round(std::clamp(ends.x0, kRangeGap, std::max(kRangeGap, width - above.width - kRangeGap)));
  above.top = plot.y0 - 2;
  above.above = above.height + kAxisTitle;
  return above;
}

void draw_range_box(const Plot& plot, const RangeBox& box, const NodeRange& range) {
  draw_band(plot, ends_of(plot, range));
  const ImVec2 low(std::round(box.left), std::round(box.top)), high(low.x + box.width, low.y + box.height);
  shapes()->AddRectFilled(low, high, to_imgui(colours::kPlot, 235));
  shapes()->AddRect(low, high, to_imgui(colours::kSelect));
  float y = low.y + kRangeMargin;
  for (const std::string& line : box.text.lines) {
    draw_text(TextSize::small, low.x + kRangeMargin, y, colours::kText, line);
    y += kRangeLine;
  }
  draw_rows(box, y);
}

}  // namespace tapedeck::viewer
