// The panel of a table of the plan. Nodes, values, parameters and decisions are this class with another table.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/tables/filtered_table.h>

#include <cstdint>

namespace tapedeck::viewer {

// A click on a row selects its node or value in the session, and a selection elsewhere marks and shows its row.
class TablePanel : public FilteredTable, public Observer {
 public:
  TablePanel(TableId id, Session& session, QWidget* parent = nullptr);
  ~TablePanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

  TableId id() const { return id_; }
  NodeId node_at(int place) const;  // of the table of nodes; kNone beyond the last row
  int row_of(NodeId n) const;       // -1 if the filter hides the node

 protected:
  void filter_changed() override { refill(); }
  void row_chosen(int place) override;
  void row_hovered(int place) override;
  void row_activated() override { session_.fit_selection(); }
  void order_changed() override { selection_changed(); }

 private:
  PlanRows& plan_rows() { return static_cast<PlanRows&>(rows()); }
  void refill();
  int place_of_selection();

  TableId id_;
  Session& session_;
  std::uint64_t shown_ = 0;           // the serial number of the model in the table
  std::uint64_t shown_measured_ = 0;  // and that of the measurements
};

}  // namespace tapedeck::viewer
