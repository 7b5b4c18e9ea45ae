// Sizes, counts and budgets as text for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck::viewer {

// Sizes read as those that `tapedeck plan` prints.
std::string human_bytes(std::int64_t bytes);  // "12.30 MiB"; whole bytes below 1 KiB
std::string grouped(std::int64_t number);     // "1,234,567"
// A text of the library, with its long numbers grouped: "996517848 bytes" -> "996,517,848 bytes". Names keep their digits.
std::string grouped_numbers(std::string_view text);
std::string exact_bytes(std::int64_t bytes);  // "12.30 MiB (12,897,484 bytes)"; "512 bytes" below 1 KiB

// The unit in which one picture shows all its bytes, so that its numbers can be compared at a glance.
struct ByteUnit {
  const char* name = "B";
  double bytes = 1;  // that one unit stands for

  // The unit for a picture whose largest number is `largest`. MiB begins at a quarter of a MiB, because most plans are read in
  // MiB.
  static ByteUnit of(std::int64_t largest);
  std::string text(std::int64_t bytes) const;  // "12.30 MiB"; "0.613 GiB"; whole bytes if the unit is B
  // The same, but a count of which the unit shows no digit is in bytes, KiB or MiB: "256 B".
  std::string readable_text(std::int64_t bytes) const;
  // The same, and the exact count: "12.30 MiB (12,897,484 bytes)"; "256 bytes" of which the unit shows no digit.
  std::string exact_text(std::int64_t bytes) const;
};

// A text of the library whose sizes are in this unit, whose times are as human_us() writes them, and whose other long numbers
// are grouped: "(150544.3 us) the peak would be 996517848 bytes, 2853376 less" -> "(150.54 ms) the peak would be 950.35 MiB,
// 2.72 MiB less". Sizes below 1024 bytes stay as they are.
std::string in_unit(std::string_view text, const ByteUnit& unit);

std::string percent(double ratio);  // 0.634 -> "63.4 %"
std::string human_us(double us);    // "12.5 us", "3.1 ms", "2.0 s"

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
