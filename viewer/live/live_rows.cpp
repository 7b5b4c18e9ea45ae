#include <tapedeck/viewer/live/live_rows.h>

#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <string>

namespace tapedeck::viewer {

namespace {

QString text_of(const std::string& text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

std::string cell(const LiveTape& tape, const LiveOp& op, int column) {
  switch (column) {
    case LiveRows::kCall:
      return grouped(static_cast<std::int64_t>(op.index));
    case LiveRows::kOp:
      return tape.text(op.op) + ((op.flags & live::OpRecord::kInPlace) != 0 ? "_" : "");
    case LiveRows::kModule:
      return tape.text(op.path);
    case LiveRows::kResult:
      return tape.text(op.types);
    case LiveRows::kBytes:
      return (op.flags & live::OpRecord::kView) != 0 ? "view" : tape.unit().readable_text(op.bytes);
    case LiveRows::kLive:
      return tape.unit().readable_text(op.live);
    case LiveRows::kPhase:
      return phase_name(op.phase);
    case LiveRows::kSite:
      return site_text(tape, op);
    default:
      return "";
  }
}

}  // namespace

void LiveRows::update() {
  std::uint64_t first = 0;
  int rows = 0;
  {
    const LiveSource::View view(source_);
    rows = static_cast<int>(view.tape().ops().size());
    first = rows == 0 ? 0 : view.tape().ops().front().index;
  }
  if (first != first_ || rows < rows_) {  // the oldest rows have gone
    beginResetModel();
    first_ = first;
    rows_ = rows;
    endResetModel();
  } else if (rows > rows_) {
    beginInsertRows({}, rows_, rows - 1);
    rows_ = rows;
    endInsertRows();
  }
}

int LiveRows::row_of(std::uint64_t index) const {
  const LiveSource::View view(source_);
  const auto& ops = view.tape().ops();
  const auto after =
      std::upper_bound(ops.begin(), ops.end(), index, [](std::uint64_t at, const LiveOp& op) { return at < op.index; });
  return std::min(static_cast<int>(after - ops.begin()), rows_) - 1;
}

QVariant LiveRows::data(const QModelIndex& index, int role) const {
  const bool right = index.column() == kCall || index.column() == kBytes || index.column() == kLive;
  if (role == Qt::TextAlignmentRole) return int(Qt::AlignVCenter | (right ? Qt::AlignRight : Qt::AlignLeft));
  if (role != Qt::DisplayRole || !index.isValid()) return {};
  const LiveSource::View view(source_);
  const auto& ops = view.tape().ops();
  const auto row = static_cast<std::size_t>(index.row());
  return row < ops.size() ? QVariant(text_of(cell(view.tape(), ops[row], index.column()))) : QVariant();
}

QVariant LiveRows::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kTitles[kColumns] = {"call",          "op",    "module", "result", "bytes",
                                                    "live after it", "phase", "place"};
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 || section >= kColumns) return {};
  return QString::fromLatin1(kTitles[section]);
}

}  // namespace tapedeck::viewer
