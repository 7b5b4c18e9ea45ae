// A value of a step as a person looks at it: statistics, a histogram, a heat map of its matrix, and the numbers at its corners.
#pragma once

#include <tapedeck/capture/replay/tensor_statistics.h>
#include <tapedeck/capture/replay/time_travel.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/viewer/words/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The last two axes of a tensor as a picture. A tensor of one axis is one row. Of further axes the first place is shown.
//
//     f32[8,64,56,56]     [0,0,:,:], 56 x 56 cells
//     f32[512,2000]       128 x 250 cells, each the mean of 4 x 8 elements
struct HeatMap {
  static constexpr std::int64_t kMostCells = 256;  // in a row, and in a column

  std::int64_t height = 0, width = 0;  // of the matrix, in elements
  std::int32_t rows = 0, columns = 0;  // of the picture, in cells; 0 if there is nothing to draw
  std::vector<float> cells;            // by row: the mean of the elements of a cell; NaN if one of them is not finite
  double min = 0, max = 0;             // of the cells that are finite
  std::string place;                   // "[0,0,:,:]"; empty if the tensor has no further axes

  // The first row or column of elements that belongs to a cell; of the number of cells: the end.
  std::int64_t top_of(std::int32_t row) const { return begin_of(row, rows, height); }
  std::int64_t left_of(std::int32_t column) const { return begin_of(column, columns, width); }
  float cell(std::int32_t row, std::int32_t column) const {
    return cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column)];
  }

 private:
  static std::int64_t begin_of(std::int64_t part, std::int64_t parts, std::int64_t size) {
    return size / parts * part + size % parts * part / parts;
  }
};
HeatMap heat_map(const Tensor& tensor);  // TypeError for a tensor without data. O(elements)

struct LookedAt {
  ValueId value = kNone;
  std::string error;  // why there is nothing to see; empty if all that follows is there
  Type type;
  TensorStatistics statistics;
  Histogram histogram;
  HeatMap map;
  std::string numbers;           // its elements, those at the corners if there are many
  std::int32_t nodes_again = 0;  // that ran again to make it; 0: its bytes were there
  std::int64_t extra_bytes = 0;  // the most bytes that this took at once
};
LookedAt look_at(ValueId v, const Inspected& seen);

// Sentences about a value that was looked at, one for each line: how it came, its range, what of it is zero or not finite.
std::vector<std::string> sentences_of(const LookedAt& seen, const ByteUnit& unit);

}  // namespace tapedeck::viewer
