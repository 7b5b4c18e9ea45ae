// The state that all panels share: the document, the shown plan, the selection and the view. Panels change the state through a
// Session, and learn of changes through four callbacks. Not thread safe: only the UI thread uses a session.
#pragma once

#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/model/plan_model.h>
#include <tapedeck/viewer/model/selection.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class Session;

// The four callbacks of a panel. The session is consistent during a callback. A callback must not attach or detach observers.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void opened() = 0;             // a document was opened; the plan may come later
  virtual void closed() = 0;             // the document is about to be replaced or closed: all ids become invalid
  virtual void selection_changed() = 0;  // the selected value or node, or the hovered value, changed
  virtual void plan_changed() = 0;       // another plan is shown, or planning began or ended
};

// The shared state of one window.
class Session {
 public:
  void attach(Observer* observer) { observers_.push_back(observer); }
  void detach(Observer* observer);

  const Document* document() const { return document_.get(); }
  const PlanModel* model() const { return model_.get(); }  // null until the first plan is shown
  std::shared_ptr<const PlanModel> shared_model() const { return model_; }
  const Selection& selection() const { return selection_; }
  bool solving() const { return solving_; }
  double progress() const { return progress_; }

  void open(Document document);
  void close();
  void show(std::shared_ptr<const PlanModel> model);  // selects the value of the same name in the new plan, if there is one
  void set_solving(bool solving, double progress = 0);

  void select_value(ValueId v);
  void select_node(NodeId n);
  void hover(ValueId v);
  void clear_selection();
  // Selects the node `by` steps further in the schedule. Without a selection, selects the first or the last node.
  void step_node(int by);
  // Selects the producer of the first operand of the selection, or the first reader of the selection.
  void follow(bool to_reader);

  PlanView view;  // the part of the plan that the pictures show; call view_changed() after a change
  void view_changed();
  void fit_all();
  void fit_selection();  // centres the selected value; if it is already centred, zooms to it

 private:
  void tell(void (Observer::*what)());
  void select(ValueId v, NodeId n);  // the value if there is one, else the node
  void find_again(const PlanModel& before, const Selection& old);

  std::vector<Observer*> observers_;
  std::shared_ptr<const Document> document_;
  std::shared_ptr<const PlanModel> model_;
  Selection selection_;
  ValueId centred_ = kNone;
  bool solving_ = false;
  double progress_ = 0;
};

}  // namespace tapedeck::viewer
