// The table of what differs between the two plans of a comparison. A click on a row selects its value on both sides of the
// picture.
#pragma once

#include <tapedeck/viewer/compare/compare_picture.h>
#include <tapedeck/viewer/plan/delta_table.h>
#include <tapedeck/viewer/tables/filtered_table.h>

#include <functional>
#include <memory>

namespace tapedeck::viewer {

class DeltaPanel : public FilteredTable {
 public:
  // `picture` outlives the panel; `repaint` draws it again.
  DeltaPanel(ComparePicture& picture, std::function<void()> repaint, QWidget* parent = nullptr);

  void refill();            // after the sides of the picture were swapped
  void follow_selection();  // after a value was selected in the picture

 protected:
  void filter_changed() override;
  void row_chosen(int place) override;
  void row_hovered(int place) override;
  void order_changed() override { follow_selection(); }

 private:
  int side_of(int place) const;  // on which the value of a row is named: the right one, if it has it

  ComparePicture& picture_;
  std::function<void()> repaint_;
  bool made_ = false;  // the base class, which asks for rows while it is made
};

}  // namespace tapedeck::viewer
