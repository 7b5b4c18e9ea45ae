// Named dimensions: which axes of the inputs vary together, between which bounds, and which attributes of the graph follow
// them.
//
//     %x: f32[4,10] [dims="b=1..64, x@0=b"]     axis 0 of %x is `b`; the graph is written down at the sample size 4
//     %h: f32[40] = reshape(%x) {shape=[40]}    [dims="h.shape.0=10*b"]
//
// Types follow the inputs by inference. Inference cannot know a number that the author's code computed from a size and handed
// over as an attribute (shape of `reshape`, stops of `slice`, the 1/n of a mean). For each such attribute the table holds a
// rule. A rule names its node by the first result of the node, so a table stays good for every graph that keeps the names.
//
// The types here are plain values. Several threads may read them at once.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A dimension with the sizes it may have, both ends included.
struct DimRange {
  std::string name;
  std::int64_t min = 1;
  std::int64_t max = kUnbounded;

  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
  bool bounded() const { return max != kUnbounded; }
  bool operator==(const DimRange&) const = default;
};

using Sizes = std::map<std::string, std::int64_t>;  // by name of the dimension
std::string to_string(const Sizes& sizes);          // "b=4, s=16"

// How an attribute follows the dimensions.
struct DimRule {
  struct Term {  // factor * the product of these dims (indices, ascending, may repeat); without dims a constant
    std::int64_t factor = 1;
    std::vector<std::int32_t> dims;
    bool operator==(const Term&) const = default;
  };
  enum class Kind : std::uint8_t {
    size,      // (sum of terms) / divisor, which must be a whole number
    multiple,  // factor * product of dims
    fraction,  // factor / product of dims
    unbiased,  // n / max(n - 1, 1), where n is what `size` would be: it makes a variance over n elements unbiased
  };
  Kind kind = Kind::size;
  std::vector<Term> terms;  // of `size` and `unbiased`
  std::int64_t divisor = 1;
  double factor = 1;  // of `multiple` and `fraction`
  std::vector<std::int32_t> dims;
  bool single = false;  // the number was rounded to f32

  bool operator==(const DimRule&) const = default;
};

struct DimTable {
  struct Axis {  // of an input
    std::string input;
    std::int32_t axis = 0;
    std::int32_t dim = 0;
    bool operator==(const Axis&) const = default;
  };
  struct Entry {        // of an attribute
    std::string node;   // the first result of its node; inside a region "outer/0/inner": region 0 of the node that makes %outer
    std::string field;  // the attribute; "type0": a result's declared size; "value": a constant's element
    std::int32_t element = -1;  // of a list; -1: the field itself
    DimRule rule;
    bool operator==(const Entry&) const = default;
  };
  std::vector<DimRange> dims;
  std::vector<Axis> axes;
  std::vector<Entry> entries;  // in node order

  bool empty() const { return dims.empty(); }
  std::int32_t find(std::string_view dim) const;  // kNone if there is none
  bool operator==(const DimTable&) const = default;
};

// The value of the rule at these sizes (by dim). `whole` is false if the value (of `unbiased`: n) is negative or no whole
// number; scale_at() is not a number then.
std::int64_t size_at(const DimRule& rule, const std::vector<std::int64_t>& sizes, bool* whole);
double scale_at(const DimRule& rule, const std::vector<std::int64_t>& sizes);

std::string rule_text(const DimTable& table,
                      const DimRule& rule);  // "4*b", "(b*s-2)/2", "single 1.0/b", "single unbiased 64*b"

// The text of the graph with the table as notes `[dims="..."]`; without the notes the graph computes the same. For printed
// text, print_with_dims(parse(s), parse_dims(s)) == s. Tests state such graphs in this form, and the tool will read it when it
// plans a .graph file for a range of sizes. parse_dims throws ParseError; text without such notes gives an empty
// table.
std::string print_with_dims(const Graph& graph, const DimTable& table);
DimTable parse_dims(std::string_view text, const std::string& file = "<text>");

// The statements of the notes, separated by commas. A .tape file will keep the table so, under the metadata key "dims", as soon
// as a step over named dimensions can be saved; no file has the key yet.
std::string dims_text(const DimTable& table);
DimTable dims_from_text(std::string_view text);
inline constexpr const char* kDimsKey = "dims";

}  // namespace TAPEDECK_API
