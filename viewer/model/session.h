// Everything the panels share: the document, the plan shown, the selection and the view. Panels change it through here and hear
// of changes through four callbacks. All of it belongs to the UI thread.
#pragma once

#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/model/plan_model.h>
#include <tapedeck/viewer/model/selection.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class Session;

// The four callbacks of a panel. While they run the session is consistent; a callback must not attach or detach observers.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void opened() = 0;             // a document was opened; there may be no plan yet
  virtual void closed() = 0;             // the document is about to be replaced, or is gone: forget all ids
  virtual void selection_changed() = 0;  // value, node or what is hovered
  virtual void plan_changed() = 0;       // another plan is shown, or solving began or ended
};

class Session {
 public:
  void attach(Observer* observer) { observers_.push_back(observer); }
  void detach(Observer* observer);

  const Document* document() const { return document_.get(); }
  const PlanModel* model() const { return model_.get(); }  // null until the first plan is there
  std::shared_ptr<const PlanModel> shared_model() const { return model_; }
  const Selection& selection() const { return selection_; }
  bool solving() const { return solving_; }
  double progress() const { return progress_; }

  void open(Document document);
  void close();
  void show(std::shared_ptr<const PlanModel> model);  // keeps the selection by name where it still exists
  void set_solving(bool solving, double progress = 0);

  void select_value(ValueId v);
  void select_node(NodeId n);
  void hover(ValueId v);
  void clear_selection();
  // Steps through the schedule; from no selection, to the first or the last node.
  void step_node(int by);
  // The first operand's producer, or the first reader, of what is selected.
  void follow(bool to_reader);

  PlanView view;  // what the pictures show; whoever changes it calls view_changed()
  void view_changed();
  void fit_all();
  void fit_selection();  // centres the selected value; once centred, zooms to it

 private:
  void tell(void (Observer::*what)());

  std::vector<Observer*> observers_;
  std::shared_ptr<const Document> document_;
  std::shared_ptr<const PlanModel> model_;
  Selection selection_;
  ValueId centred_ = kNone;
  bool solving_ = false;
  double progress_ = 0;
};

}  // namespace tapedeck::viewer
