#include <tapedeck/viewer/model/looked_at.h>

#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/replay/elements.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapedeck::viewer {

namespace {

constexpr int kBins = 48;

// "[0,0,:,:]" for four axes.
std::string place_in(std::int32_t rank) {
  if (rank <= 2) return "";
  std::string text = "[";
  for (std::int32_t axis = 0; axis < rank - 2; ++axis) text += "0,";
  return text + ":,:]";
}

float mean_of_cell(const TensorElements& elements, const HeatMap& map, std::int32_t row, std::int32_t column) {
  const std::int64_t top = map.top_of(row), bottom = map.top_of(row + 1);
  const std::int64_t left = map.left_of(column), right = map.left_of(column + 1);
  long double sum = 0;
  for (std::int64_t y = top; y < bottom; ++y)
    for (std::int64_t x = left; x < right; ++x) sum += elements.number(y * map.width + x);
  const auto mean = static_cast<float>(sum / static_cast<long double>((bottom - top) * (right - left)));
  return std::isfinite(mean) ? mean : std::numeric_limits<float>::quiet_NaN();
}

std::string counted(std::int64_t count, std::int64_t all, const char* what) {
  return fmt::format("{} of {} elements {} {}", grouped(count), grouped(all), count == 1 ? "is" : "are", what);
}

}  // namespace

HeatMap heat_map(const Tensor& tensor) {
  HeatMap map;
  const std::int32_t rank = tensor.rank();
  const TensorElements elements(tensor);
  if (rank == 0 || elements.count() == 0) return map;
  map.width = tensor.shape()[rank - 1];
  map.height = rank == 1 ? 1 : tensor.shape()[rank - 2];
  map.place = place_in(rank);
  map.rows = static_cast<std::int32_t>(std::min(map.height, HeatMap::kMostCells));
  map.columns = static_cast<std::int32_t>(std::min(map.width, HeatMap::kMostCells));
  bool any = false;
  for (std::int32_t row = 0; row < map.rows; ++row)
    for (std::int32_t column = 0; column < map.columns; ++column) {
      const float mean = mean_of_cell(elements, map, row, column);
      map.cells.push_back(mean);
      if (std::isnan(mean)) continue;
      map.min = any ? std::min<double>(map.min, mean) : mean;
      map.max = any ? std::max<double>(map.max, mean) : mean;
      any = true;
    }
  return map;
}

LookedAt look_at(ValueId v, const Inspected& seen) {
  LookedAt looked;
  looked.value = v;
  looked.type = seen.value.type();
  looked.statistics = statistics(seen.value);
  looked.histogram = histogram(seen.value, kBins);
  looked.map = heat_map(seen.value);
  looked.numbers = corner_text(seen.value);
  looked.nodes_again = seen.nodes;
  looked.extra_bytes = seen.extra_bytes;
  return looked;
}

std::vector<std::string> sentences_of(const LookedAt& seen, const ByteUnit& unit) {
  if (!seen.error.empty()) return {seen.error};
  const TensorStatistics& s = seen.statistics;
  std::vector<std::string> lines;
  if (seen.nodes_again == 0)
    lines.push_back("its bytes are there, and were copied");
  else
    lines.push_back(fmt::format("its bytes are gone: {} node{} computed it again beside the step, in {}", seen.nodes_again,
                                seen.nodes_again == 1 ? "" : "s", unit.readable_text(seen.extra_bytes)));
  if (s.elements > s.not_finite())
    lines.push_back(
        fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}, standard deviation {:.6g}", s.min, s.max, s.mean, s.deviation));
  if (s.nan > 0) lines.push_back(counted(s.nan, s.elements, "NaN"));
  if (s.infinite > 0) lines.push_back(counted(s.infinite, s.elements, "infinite"));
  if (s.zeros > 0) lines.push_back(counted(s.zeros, s.elements, "zero"));
  return lines;
}

}  // namespace tapedeck::viewer
