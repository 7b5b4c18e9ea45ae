// Sizes, counts and budgets as text for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck::viewer {

// Sizes read as those that `tapedeck plan` prints.
std::string human_bytes(std::int64_t bytes);  // "12.30 MiB"; whole bytes below 1 KiB
std::string grouped(std::int64_t number);     // "1,234,567"
std::string exact_bytes(std::int64_t bytes);  // "12.30 MiB (12,897,484 bytes)"; "512 bytes" below 1 KiB
std::string percent(double ratio);            // 0.634 -> "63.4 %"
std::string human_us(double us);              // "12.5 us", "3.1 ms", "2.0 s"

std::string csv_field(const std::string& text);  // of a line of CSV: in quotes if it has a comma, a quote or a line end

// Parses "4096", "64MiB", "1.5GB" or "2 KiB". A bare number is bytes; KB MB GB TB are powers of 1000, KiB MiB GiB TiB powers of
// 1024. Returns false for any other text.
bool parse_bytes(std::string_view text, std::int64_t* bytes);

// A budget: a size in bytes, or a percentage of the peak of the plan that keeps everything ("60%").
struct Budget {
  std::int64_t bytes = -1;  // -1: not given
  double percent = -1;      // -1: not given
  bool given() const { return bytes >= 0 || percent >= 0; }
  bool operator==(const Budget& o) const { return bytes == o.bytes && percent == o.percent; }
};
// Parses a size or a percentage. Returns false for any other text.
bool parse_budget(std::string_view text, Budget* budget);

}  // namespace tapedeck::viewer
