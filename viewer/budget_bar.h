// The controls of the budget: the slider, the percentage, the size, the button for none, and how far planning is.
#pragma once

#include <tapedeck/viewer/model/budget.h>
#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/words/format.h>

#include <QtWidgets/QToolBar>

#include <functional>
#include <map>

class QDoubleSpinBox;
class QLabel;
class QProgressBar;
class QSlider;
class QToolButton;

namespace tapedeck::viewer {

// The bar. It changes nothing by itself: it asks for a budget, and shows the one that the session says.
class BudgetBar : public QToolBar {
 public:
  BudgetBar(Session& session, std::function<void(const Budget&)> ask, QWidget* parent = nullptr);

  // Copies the session into the controls. A control that has the focus keeps what is being typed.
  void refresh();

  QSlider& slider() { return *slider_; }
  const BudgetScale& scale() const { return scale_; }

 private:
  void ask_for(std::int64_t bytes);
  void show_bytes(std::int64_t bytes);
  void use_unit(const ByteUnit& unit);

  Session& session_;
  std::function<void(const Budget&)> ask_;
  QSlider* slider_;
  QDoubleSpinBox* percent_box_;
  QDoubleSpinBox* size_box_;
  QToolButton* no_budget_;
  QProgressBar* progress_;
  QLabel* costs_;
  std::map<QWidget*, QAction*> shown_;  // a widget of a toolbar is shown and hidden by its action
  BudgetScale scale_;
  ByteUnit unit_;  // of the box with the size
};

}  // namespace tapedeck::viewer
