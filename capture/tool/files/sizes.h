// Sizes, times and counts as people write and read them.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck::tool {

// "64MiB", "1.5GB", "4096": bytes; KB MB GB TB are 1000s, KiB MiB GiB TiB 1024s. Throws UsageError.
std::int64_t parse_size(const std::string& text);
// The value of --chunk: a size above zero; 0 for no text. Throws UsageError.
std::int64_t parse_chunk(const std::string& text);
// The value of --budget, "50%" or a size, as the options of a plan; without a text they stay as they are. Throws UsageError.
void read_budget(const std::string& text, PlanOptions* options);
std::string human_size(std::int64_t bytes);  // "12.34 MiB (12,939,427 bytes)"
// "90", "0.5", "500ms", "30s", "2min", "1h": seconds; a bare number is seconds. Throws UsageError, also below a millisecond.
double parse_seconds(const std::string& text);
std::string plural(std::int64_t number, std::string_view noun);  // "1 node", "2 nodes"

}  // namespace tapedeck::tool
