// Values of JSON that another program wrote: numbers within the bounds of a graph, texts for messages, and the error of a
// foreign file.
#pragma once

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/import/imported_results.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

inline constexpr std::int64_t kMostGraphBytes = std::int64_t{1} << 60;  // of all values, the bound of verify()
inline constexpr double kMostMicroseconds = 1e15;                       // of one node: about thirty years

// Throws ParseError, "FILE:LINE: error: REASON".
[[noreturn]] void refuse(const std::string& file, std::uint32_t line, const std::string& reason);

// An integer, a real number without a fraction, or a string of decimal digits. None: the value is no such thing.
std::optional<std::int64_t> whole_number(JsonValue value);
// A number from 0 to kMaxTypeBytes.
std::optional<std::int64_t> bytes_in(JsonValue value);
// A number from 0 to kMostMicroseconds.
std::optional<double> microseconds_in(JsonValue value);

std::string shown(JsonValue value);  // for messages: a number, a short quoted string, "an array", ...

// "traces/unet_b6.log.gz" -> "unet_b6", the name of a graph from a file that gives it none.
std::string name_from_path(std::string_view path);

// Appends a node `opaque` whose results are bytes: u8[N]. REQUIRES: sizes and microseconds within the bounds above.
NodeId add_opaque(Graph* graph, std::span<const ValueId> operands, std::span<const std::int64_t> result_bytes,
                  double microseconds, const Origin& origin);

// The results of the graph, in order. `end_name` is for the node %end.
void set_results(Graph* graph, std::vector<ValueId> results, ImportedResults how, Name end_name);

}  // namespace tapedeck
