// Prints the nodes of a step that lose the most time against their bounds, then the sums by op, then the step.
#include <tapedeck/capture/tool/reports/roofline_report.h>

#include <tapedeck/capture/tool/files/peaks.h>
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace tapedeck::tool {

namespace {

// The number of rows that are shown.
std::size_t shown_of(std::size_t rows, std::int64_t top) {
  return top <= 0 ? rows : std::min(rows, static_cast<std::size_t>(top));
}

std::string place_of(const RooflineRow& row) { return row.module.empty() ? row.site : row.module; }

std::string number_or_dash(double value, const char* unit = "") {
  return value > 0 ? fmt::format("{:.1f}{}", value, unit) : std::string("-");
}

std::string bound_text(const NodeBound& bound) {
  return bound.by == BoundBy::unknown ? std::string("-") : fmt::format("{:.1f}", bound.us);
}

// The widths of the columns of text, for the rows that are shown.
struct Widths {
  std::size_t node = 4, op = 2, where = 5;
};

Widths widths_of(const Roofline& r, std::size_t shown) {
  Widths w;
  for (std::size_t i = 0; i < shown; ++i) {
    w.node = std::max(w.node, r.rows[i].name.size() + 1);
    w.op = std::max(w.op, r.rows[i].op.size());
    w.where = std::max(w.where, place_of(r.rows[i]).size());
  }
  return w;
}

std::string row_line(const RooflineRow& row, const ThreadPeaks& peaks, const Widths& w) {
  return fmt::format("  {:<{}}  {:<{}}  {:<{}} {:>10.1f} {:>10} {:>10.1f} {:>7} {:>7} {:>8}  {:<8} {:>5.1f} %\n",
                     "%" + row.name, w.node, row.op, w.op, place_of(row), w.where, row.us, bound_text(row.bound), row.lost_us,
                     number_or_dash(row.gflop_per_s), number_or_dash(row.gb_per_s), number_or_dash(row.percent, " %"),
                     binding_peak(row.bound, peaks), 100 * row.share);
}

std::string rest_line(std::span<const RooflineRow> rest, const Widths& w) {
  double us = 0, bound_us = 0, lost_us = 0, share = 0;
  for (const RooflineRow& row : rest) us += row.us, bound_us += row.bound.us, lost_us += row.lost_us, share += row.share;
  return fmt::format("  {:<{}} {:>10.1f} {:>10.1f} {:>10.1f} {:>7} {:>7} {:>8}  {:<8} {:>5.1f} %\n",
                     fmt::format("and {} more", rest.size()), w.node + w.op + w.where + 4, us, bound_us, lost_us, "", "", "",
                     "", 100 * share);
}

std::string node_lines(const Roofline& r, std::int64_t top) {
  const std::size_t shown = shown_of(r.rows.size(), top);
  const Widths w = widths_of(r, shown);
  std::string text =
      fmt::format("  {:<{}}  {:<{}}  {:<{}} {:>10} {:>10} {:>10} {:>7} {:>7} {:>8}  {:<8} {:>7}\n", "node", w.node, "op", w.op,
                  "where", w.where, "us", "bound us", "lost us", "GF/s", "GB/s", "of peak", "by", "share");
  for (std::size_t i = 0; i < shown; ++i) text += row_line(r.rows[i], r.peaks, w);
  return shown == r.rows.size() ? text : text + rest_line(std::span(r.rows).subspan(shown), w);
}

std::string op_lines(const Roofline& r, std::int64_t top) {
  std::string text =
      fmt::format("  {:<30} {:>6} {:>10} {:>10} {:>10} {:>7}\n", "op", "nodes", "us", "bound us", "lost us", "share");
  const std::size_t shown = shown_of(r.ops.size(), top);
  for (std::size_t i = 0; i < shown; ++i) {
    const RooflineOp& op = r.ops[i];
    text += fmt::format("  {:<30} {:>6} {:>10.1f} {:>10.1f} {:>10.1f} {:>5.1f} %\n", op.op, op.nodes, op.us, op.bound_us,
                        op.lost_us, 100 * op.share);
  }
  if (shown < r.ops.size()) text += fmt::format("  and {} more ops\n", r.ops.size() - shown);
  return text;
}

std::string step_lines(const Roofline& r) {
  std::string text = fmt::format("  step {:.1f} us, the fastest {:.1f} us, nodes {:.1f} us; sum of bounds {:.1f} us\n",
                                 r.step_us, r.fastest_us, r.kernels_us, r.bound_us);
  if (r.ratio > 0)
    text += fmt::format("  over the bounds: step {:.3f}, the fastest {:.3f}, nodes {:.3f}\n", r.ratio, r.fastest_ratio,
                        r.kernels_us / r.bound_us);
  if (r.unbounded > 0)
    text +=
        fmt::format("  {} node{} without a bound took {:.1f} us\n", r.unbounded, r.unbounded == 1 ? "" : "s", r.unbounded_us);
  if (r.below_bound > 0)
    text += fmt::format("  {} node{} faster than the bound; the sum of bounds counts the measured time there\n", r.below_bound,
                        r.below_bound == 1 ? " was" : "s were");
  return text;
}

Json peaks_object(const ThreadPeaks& p) {
  Json levels = Json::array();
  for (std::size_t i = 0; i < p.levels.size(); ++i)
    levels.push_back({{"name", level_name(p, i)},
                      {"bytes", p.levels[i].bytes > 0 ? Json(p.levels[i].bytes) : Json(nullptr)},
                      {"gb_per_s", p.levels[i].gb_per_s}});
  return {{"threads", p.threads},
          {"gflop_per_s", p.gflop_per_s},
          {"matmul_gflop_per_s", p.matmul_gflop_per_s},
          {"half_gflop_per_s", p.half_gflop_per_s},
          {"levels", levels}};
}

Json row_json(const RooflineRow& row, const ThreadPeaks& peaks) {
  const bool known = row.bound.by != BoundBy::unknown;
  const auto if_known = [&](double value) { return known ? Json(value) : Json(nullptr); };
  return {{"node", row.node},
          {"name", row.name},
          {"op", row.op},
          {"module", row.module},
          {"site", row.site},
          {"us", row.us},
          {"bound_us", if_known(row.bound.us)},
          {"lost_us", row.lost_us},
          {"flops", if_known(row.bound.flops)},
          {"bytes", if_known(row.bound.bytes)},
          {"gflop_per_s", if_known(row.gflop_per_s)},
          {"gb_per_s", if_known(row.gb_per_s)},
          {"percent_of_peak", if_known(row.percent)},
          {"bound_by", binding_peak(row.bound, peaks)},
          {"share", row.share}};
}

}  // namespace

std::string binding_peak(const NodeBound& bound, const ThreadPeaks& peaks) {
  switch (bound.by) {
    case BoundBy::nothing:
      return "-";
    case BoundBy::flops:
      return "flops";
    case BoundBy::bytes:
      return level_name(peaks, bound.level);
    case BoundBy::regions:
      return "inside";
    case BoundBy::unknown:
      break;
  }
  return "no bound";
}

std::string roofline_text(const RooflineAnswer& answer, std::int64_t top) {
  const Roofline& r = answer.roofline;
  return fmt::format("  peaks ({}), {}\n", answer.peaks_source, peaks_text(r.peaks)) + node_lines(r, top) + op_lines(r, top) +
         step_lines(r);
}

Json peaks_json(const std::vector<ThreadPeaks>& peaks) {
  Json list = Json::array();
  for (const ThreadPeaks& p : peaks) list.push_back(peaks_object(p));
  return list;
}

Json roofline_json(const RooflineAnswer& answer) {
  const Roofline& r = answer.roofline;
  Json peaks = peaks_object(r.peaks);
  peaks["source"] = answer.peaks_source;
  Json rows = Json::array(), ops = Json::array();
  for (const RooflineRow& row : r.rows) rows.push_back(row_json(row, r.peaks));
  for (const RooflineOp& op : r.ops)
    ops.push_back({{"op", op.op},
                   {"nodes", op.nodes},
                   {"us", op.us},
                   {"bound_us", op.bound_us},
                   {"lost_us", op.lost_us},
                   {"share", op.share}});
  return {{"peaks", peaks},
          {"step_us", r.step_us},
          {"fastest_us", r.fastest_us},
          {"kernels_us", r.kernels_us},
          {"bound_us", r.bound_us},
          {"ratio", r.ratio > 0 ? Json(r.ratio) : Json(nullptr)},
          {"fastest_ratio", r.ratio > 0 ? Json(r.fastest_ratio) : Json(nullptr)},
          {"below_bound", r.below_bound},
          {"unbounded", r.unbounded},
          {"unbounded_us", r.unbounded_us},
          {"nodes", rows},
          {"ops", ops}};
}

}  // namespace tapedeck::tool
