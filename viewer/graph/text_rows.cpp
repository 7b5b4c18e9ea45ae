#include <tapedeck/viewer/graph/text_rows.h>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::int32_t kLeastFold = 4;  // fewer lines stay as they are

bool has_large_letter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

TextRows::TextRows(std::shared_ptr<const GraphText> before, std::shared_ptr<const GraphText> after,
                   std::shared_ptr<const TextDiff> diff, bool folds)
    : before_(std::move(before)), after_(std::move(after)), diff_(std::move(diff)), folds_(folds) {
  fill();
}

std::int32_t TextRows::longest() const {
  const std::int32_t old = before_ && diff_ ? before_->longest() : 0;
  return after_ ? std::max(old, after_->longest()) : 0;
}

void TextRows::fill() {
  rows_.clear();
  if (!after_) return;
  row_of_line_.assign(static_cast<std::size_t>(after_->lines()), -1);
  std::vector<DiffLine> all;
  if (!diff_)
    for (std::int32_t n = 0; n < after_->lines(); ++n) all.push_back({LineKind::same, -1, n});
  const std::vector<DiffLine>& lines = diff_ ? diff_->lines : all;
  const auto count = lines.size();
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i;
    while (end < count && lines[end].kind == LineKind::same) ++end;
    const std::size_t from = std::min(end, i == 0 ? i : i + kContext);
    const std::size_t to = std::max(from, end == count ? end : end - std::min<std::size_t>(end, kContext));
    const bool fold = folds_ && to >= from + kLeastFold && !unfolded_.count(lines[from].after);
    for (std::size_t n = i; n < end; ++n) {
      if (fold && n > from && n < to) {
        row_of_line_[static_cast<std::size_t>(lines[n].after)] = static_cast<std::int32_t>(rows_.size()) - 1;
        continue;
      }
      row_of_line_[static_cast<std::size_t>(lines[n].after)] = static_cast<std::int32_t>(rows_.size());
      const bool folded = fold && n == from;
      rows_.push_back({LineKind::same, lines[n].before, lines[n].after, folded ? static_cast<std::int32_t>(to - from) : 0});
    }
    for (i = end; i < count && lines[i].kind != LineKind::same; ++i) {
      const TextRow row{lines[i].kind, lines[i].before, lines[i].after, 0};
      if (!is_old(row)) row_of_line_[static_cast<std::size_t>(row.after)] = static_cast<std::int32_t>(rows_.size());
      rows_.push_back(row);
    }
  }
}

void TextRows::unfold(std::int32_t row) {
  if (row < 0 || row >= count() || rows_[static_cast<std::size_t>(row)].folded == 0) return;
  unfolded_.insert(rows_[static_cast<std::size_t>(row)].after);
  fill();
}

std::int32_t TextRows::show_line(std::int32_t line) {
  if (!after_ || line < 0 || line >= after_->lines()) return -1;
  unfold(row_of_line_[static_cast<std::size_t>(line)]);
  return row_of_line_[static_cast<std::size_t>(line)];
}

std::vector<std::int32_t> TextRows::find(const std::string& query) const {
  std::vector<std::int32_t> found;
  if (query.empty()) return found;
  const bool exact = has_large_letter(query);
  for (std::int32_t n = 0; n < count(); ++n) {
    const TextRow& row = rows_[static_cast<std::size_t>(n)];
    if (row.folded > 0) continue;
    const GraphText& text = *text_of(row);
    const std::string_view line = exact ? text.line(line_of(row)) : text.lower_line(line_of(row));
    if (line.find(query) != std::string_view::npos) found.push_back(n);
  }
  return found;
}

std::int32_t TextRows::next_change(std::int32_t row, int by) const {
  const auto changed = [&](std::int32_t n) {
    return n >= 0 && n < count() && rows_[static_cast<std::size_t>(n)].kind != LineKind::same;
  };
  for (std::int32_t n = row + by; n >= 0 && n < count(); n += by)
    if (changed(n) && !changed(n - 1)) return n;
  return -1;
}

std::int32_t line_defining(const GraphText& text, const std::string& word) {
  const std::string wanted = word + ":";
  const std::string& all = text.text();
  for (std::size_t at = all.find(wanted); at != std::string::npos; at = all.find(wanted, at + 1)) {
    const std::int32_t line = text.line_at(at);
    if (!text.is_nested(line)) return line;
  }
  return -1;
}

}  // namespace tapedeck::viewer
