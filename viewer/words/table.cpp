#include <tapedeck/viewer/words/table.h>

#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <ostream>

namespace tapedeck::viewer {

namespace {

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t n = 0;
  while (at + n < text.size() && is_digit(text[at + n])) ++n;
  return n;
}

std::string_view without_zeros(std::string_view digits) {
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

// "1 node", "2 nodes".
std::string counted(std::int64_t n, const TableLayout& layout) {
  return grouped(n) + " " + (n == 1 ? layout.one : layout.many);
}

std::int32_t found_at(const std::vector<std::int32_t>& index, std::int32_t at) {
  return at >= 0 && at < static_cast<std::int32_t>(index.size()) ? index[at] : kNone;
}

void note_first(std::vector<std::int32_t>* index, std::int32_t at, std::int32_t row) {
  if (at < 0) return;
  if (at >= static_cast<std::int32_t>(index->size())) index->resize(static_cast<std::size_t>(at) + 1, kNone);
  if ((*index)[at] == kNone) (*index)[at] = row;
}

constexpr std::size_t kMostNoted = 3;

struct NotedOrders {
  std::mutex mutex;
  std::vector<RowOrder> of[kTableCount];  // the last one first
};
NotedOrders& noted() {
  static NotedOrders orders;
  return orders;
}

}  // namespace

void note_order(TableId table, RowOrder by) {
  std::lock_guard lock(noted().mutex);
  std::vector<RowOrder>& orders = noted().of[static_cast<int>(table)];
  std::erase_if(orders, [&](const RowOrder& o) { return !(o < by) && !(by < o); });
  orders.insert(orders.begin(), by);
  if (orders.size() > kMostNoted) orders.pop_back();
}

std::vector<RowOrder> noted_orders(TableId table) {
  std::lock_guard lock(noted().mutex);
  return noted().of[static_cast<int>(table)];
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = small_letter(c);
  return small;
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    const std::size_t m = digits_at(a, i), n = digits_at(b, j);
    const std::string_view x = without_zeros(a.substr(i, m)), y = without_zeros(b.substr(j, n));
    if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    i += m, j += n;
  }
  return a.size() - i < b.size() - j;
}

int TableLayout::column(std::string_view key) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.key == key; });
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

int TableLayout::flag(std::string_view word) const {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const char* f) { return f == word; });
  return found == flags.end() ? -1 : static_cast<int>(found - flags.begin());
}

// Under a lock, because the UI thread and the thread of a plan may ask at once.
struct Table::Orders {
  std::mutex mutex;
  std::map<RowOrder, std::shared_ptr<const std::vector<std::int32_t>>> made;
};

Table::Table(const TableLayout& layout, std::int32_t rows)
    : layout_(&layout),
      orders_(std::make_shared<Orders>()),
      cells_(layout.columns.size()),
      flags_(layout.flags.size(), std::vector<char>(static_cast<std::size_t>(rows))),
      ids_(static_cast<std::size_t>(rows)) {
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    if (is_number(layout.columns[c].kind))
      cells_[c].numbers.assign(ids_.size(), kNoNumber);
    else
      cells_[c].text_of.assign(ids_.size(), 0);
  }
}

void Table::set_text(int column, std::int32_t row, const std::string& text) {
  Cells& cells = cells_[column];
  if (row > 0 && cells.count() > 0 && text_at(cells, cells.text_of[row - 1]) == text) {  // rows often repeat the one before
    cells.text_of[row] = cells.text_of[row - 1];
    return;
  }
  // Where no text came twice, as in a column of names, they are not looked for any more.
  constexpr std::size_t kEnough = 500;
  const auto next = static_cast<std::int32_t>(cells.count());
  if (cells.repeats == 0 && cells.count() >= kEnough) {
    cells.known.clear();
    cells.add(text);
    cells.text_of[row] = next;
    return;
  }
  const auto [known, fresh] = cells.known.emplace(text, next);
  if (fresh)
    cells.add(text);
  else
    ++cells.repeats;
  cells.text_of[row] = known->second;
}

void Table::finish() {
  for (Cells& cells : cells_) {
    cells.known = {};
    cells.texts.shrink_to_fit();
    cells.starts.shrink_to_fit();
    cells.lower = in_small_letters(cells.texts);
    if (cells.lower == cells.texts) cells.lower = {};
  }
  for (std::int32_t row = 0; row < rows(); ++row) {
    note_first(&by_node_, ids_[row].node, row);
    note_first(&by_entry_, ids_[row].entry, row);
  }
  renew_orders();
}

void Table::renew_orders() {
  orders_ = std::make_shared<Orders>();
  totals_of_all_ = totals(*order({}));
}

std::shared_ptr<const std::vector<std::int32_t>> Table::order(RowOrder by) const {
  std::lock_guard lock(orders_->mutex);
  auto& made = orders_->made[by];
  if (!made)
    made = std::make_shared<const std::vector<std::int32_t>>(by.column < 0 ? all_rows() : sorted(by.column, by.descending));
  return made;
}

std::string Table::number_text(ColumnKind kind, double number) const {
  if (std::isnan(number)) return {};
  if (kind == ColumnKind::us) return human_us(number);
  const std::int64_t whole = std::llround(number);
  if (kind == ColumnKind::bytes) return unit_ ? unit_->readable_text(whole) : human_bytes(whole);
  return grouped(whole);
}

std::string Table::shown(int column, std::int32_t row) const {
  const ColumnKind kind = layout_->columns[column].kind;
  if (is_number(kind)) return number_text(kind, number(column, row));
  // Sentences of the library hold sizes; names and types hold none.
  const std::string text = raw_text(column, row);
  return unit_ && kind == ColumnKind::text && text.find(' ') != std::string::npos ? in_unit(text, *unit_) : text;
}

std::string Table::exact(int column, std::int32_t row) const {
  const ColumnKind kind = layout_->columns[column].kind;
  if (!is_number(kind)) return raw_text(column, row);
  const double x = number(column, row);
  if (std::isnan(x)) return {};
  if (kind != ColumnKind::us) return std::to_string(std::llround(x));
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}

std::int32_t Table::row_of_node(NodeId n) const { return found_at(by_node_, n); }
std::int32_t Table::row_of_entry(std::int32_t entry) const { return found_at(by_entry_, entry); }

std::vector<std::int32_t> Table::all_rows() const {
  std::vector<std::int32_t> all(ids_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// By row: the number, or the rank of the text among the texts of the column.
std::vector<double> Table::ranks(int column) const {
  const Cells& cells = cells_[column];
  if (is_number(layout_->columns[column].kind)) return cells.numbers;
  std::vector<std::int32_t> order(cells.count());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return natural_less(lower_text(column, a), lower_text(column, b)); });
  std::vector<double> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && text_at(cells, order[i]) == text_at(cells, order[i - 1]);
    rank[order[i]] = same ? rank[order[i - 1]] : static_cast<double>(i);
  }
  std::vector<double> by_row(ids_.size());
  for (std::size_t row = 0; row < by_row.size(); ++row) by_row[row] = rank[cells.text_of[row]];
  return by_row;
}

void Table::Cells::add(const std::string& text) {
  texts += text;
  texts += '\n';
  starts.push_back(texts.size());
}

std::string_view Table::text_at(const Cells& cells, std::int32_t text) {
  const std::size_t start = cells.starts[text];
  return std::string_view(cells.texts).substr(start, cells.starts[text + 1] - start - 1);
}

std::string_view Table::lower_text(int column, std::size_t text) const {
  const Cells& cells = cells_[column];
  return std::string_view(cells.in_small_letters()).substr(cells.starts[text], cells.starts[text + 1] - cells.starts[text] - 1);
}

std::vector<char> Table::texts_with(int column, const std::string& word) const {
  const Cells& cells = cells_[column];
  std::vector<char> found(cells.count());
  const std::string& texts = cells.in_small_letters();
  const char *const begin = texts.data(), *const end = begin + texts.size();
  std::size_t text = 0;
  for (const char* at = begin; at != end; at = begin + cells.starts[text]) {
    const void* hit = memmem(at, static_cast<std::size_t>(end - at), word.data(), word.size());
    if (hit == nullptr) break;
    const auto place = static_cast<std::size_t>(static_cast<const char*>(hit) - begin);
    while (cells.starts[text + 1] <= place) ++text;
    // A word with a line end in it may begin in one text and end in the next.
    found[text] = place + word.size() < cells.starts[text + 1];
    ++text;
  }
  return found;
}

std::vector<char> Table::texts_equal(int column, const std::string& word) const {
  std::vector<char> found(cells_[column].count());
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = lower_text(column, i) == word;
  return found;
}

std::vector<char> Table::texts_beginning(int column, const std::string& word) const {
  std::vector<char> found(cells_[column].count());
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = lower_text(column, i).starts_with(word);
  return found;
}

std::vector<std::int32_t> Table::sorted(int column, bool descending) const {
  const std::vector<double> rank = ranks(column);
  std::vector<std::int32_t> order = all_rows();
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (std::isnan(rank[a]) || std::isnan(rank[b])) return !std::isnan(rank[a]) && std::isnan(rank[b]);
    return descending ? rank[a] > rank[b] : rank[a] < rank[b];
  });
  return order;
}

Totals Table::totals(std::span<const std::int32_t> rows) const {
  Totals totals{static_cast<std::int64_t>(rows.size()), std::vector<double>(cells_.size())};
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    if (!layout_->columns[c].summed) continue;
    for (const std::int32_t row : rows)
      if (!std::isnan(cells_[c].numbers[row])) totals.sums[c] += cells_[c].numbers[row];
  }
  return totals;
}

std::string Table::totals_text(const Totals& totals) const {
  std::string text = counted(totals.rows, *layout_);
  for (std::size_t c = 0; c < totals.sums.size(); ++c) {
    const Column& column = layout_->columns[c];
    const bool is_again = column.key == std::string_view("again"), is_measured = column.key == std::string_view("measured");
    if (!column.summed || ((is_again || is_measured) && totals.sums[c] == 0)) continue;  // there is nothing of the kind
    text += " · " + number_text(column.kind, totals.sums[c]);
    if (column.kind == ColumnKind::count) text += " " + std::string(column.title);
    if (is_again) text += " again";
    if (is_measured) text += " measured";
  }
  return text;
}

void Table::write_csv(std::ostream& out, std::span<const std::int32_t> rows) const {
  std::string line;
  for (const Column& column : layout_->columns) line += (line.empty() ? "" : ",") + std::string(column.key);
  out << line << '\n';
  for (const std::int32_t row : rows) {
    line.clear();
    for (int c = 0; c < static_cast<int>(cells_.size()); ++c) line += (c == 0 ? "" : ",") + csv_field(exact(c, row));
    out << line << '\n';
  }
}

}  // namespace tapedeck::viewer
