// The table of nodes and its filter. The selected row is the selected node.
#pragma once

#include <tapedeck/viewer/model/session.h>

#include <QtWidgets/QWidget>

class QLabel;
class QLineEdit;
class QTreeView;

namespace tapedeck::viewer {

// The filter, the number of nodes that pass, and the table.
class NodesPanel : public QWidget, public Observer {
 public:
  explicit NodesPanel(Session& session, QWidget* parent = nullptr);
  ~NodesPanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

  QLineEdit* filter() { return filter_; }
  QTreeView* table() { return table_; }
  NodeId node_at(int row) const;  // the node in a row of the table; kNone beyond the last row
  int row_of(NodeId n) const;     // -1 if the filter hides the node

 private:
  class Rows;
  void refill();

  Session& session_;
  Rows* rows_;
  QLineEdit* filter_;
  QLabel* count_;
  QTreeView* table_;
  std::uint64_t shown_ = 0;  // the serial number of the model in the table
  // True while the table copies the session's selection, so that the table does not change the session.
  bool following_ = false;
};

}  // namespace tapedeck::viewer
