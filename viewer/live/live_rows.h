// The calls of a running program as rows of a table of Qt.
#pragma once

#include <tapedeck/viewer/live/live_source.h>

#include <QtCore/QAbstractTableModel>

namespace tapedeck::viewer {

// A row for each call that is kept, the oldest first. update() takes the rows that came, at once: the table shows them then. A
// cell takes the lock of the tape for a moment.
class LiveRows : public QAbstractTableModel {
 public:
  enum Column : int { kCall, kOp, kModule, kResult, kBytes, kLive, kPhase, kSite, kColumns };

  explicit LiveRows(const LiveSource& source, QObject* parent) : QAbstractTableModel(parent), source_(source) {}
  void update();
  int row_of(std::uint64_t index) const;  // of the call, or of the last one before it; -1: none

  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : rows_; }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : kColumns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const LiveSource& source_;
  int rows_ = 0;
  std::uint64_t first_ = 0;  // the index of the first row
};

}  // namespace tapedeck::viewer
