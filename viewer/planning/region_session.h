// A region of a node (the body of a loop, a branch) as a plan of its own: which one is shown, and a session for its selection
// and its view. The model is made in the background; until it is there, the step stays in the picture.
//
//     go(path) ---> thread: place_inside() ---> update(): region() and session() are those of the region
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/plan/regions.h>
#include <tapedeck/viewer/plan/workspace_parts.h>
#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/saved/saved_session.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

struct ShownRegion {
  std::shared_ptr<const PlanModel> step;  // the shown plan that the region is of
  RegionPlace place;
  NodeRegions facts;                     // about the node of the region
  std::vector<WorkspacePart> workspace;  // of that node, in the words of this region
};

// Only the UI thread may use it.
class RegionSession {
 public:
  // `panel` hears of changes of the selection and the view of the region. Any thread may call `wake`, which asks the panel to
  // call update().
  RegionSession(Session& step, Observer& panel, std::function<void()> wake);

  const RegionPath& path() const { return path_; }  // empty: the step
  std::size_t depth() const { return path_.size(); }
  // Null: the step is shown, or the region is not there yet.
  const ShownRegion* region() const { return path_.empty() ? nullptr : region_.get(); }
  // The session of the picture: of the region, if it is there, else of the step.
  Session& session() { return region() != nullptr ? inside_ : step_; }
  const Session& session() const { return region() != nullptr ? inside_ : step_; }

  void enter(NodeId n);  // of session(), by the region that it opens with; nothing if it has no regions
  // Enters the selected node; where none is selected that has regions, shows the next region of the node around. False if there
  // is nothing to show.
  bool enter_selection();
  void show_region(int region);   // of the node around. REQUIRES: region()
  bool leave(std::size_t depth);  // back to the step (0), or to a region on the way; false if it is shown already
  // The region that is shown, its selection and its view, as a session file keeps them. A restored region is shown as soon as a
  // plan has it, unless a person goes elsewhere before.
  SavedRegion saved() const;
  void restore(SavedRegion region);
  void update();                   // takes what is there, and asks for what is missing
  void finish();                   // waits for it
  void stop() { task_.cancel(); }  // no thread calls `wake` any more
  void forget();                   // before the document goes
  bool settled() const;            // nothing is missing

 private:
  struct Result {
    std::shared_ptr<const ShownRegion> region;  // null: the plan does not have it any more
    std::string error;
  };
  void go(RegionPath path);
  void take(Result result);
  void show_restored();

  Session& step_;
  Session inside_;
  RegionPath path_;
  std::shared_ptr<const ShownRegion> region_;
  std::optional<SavedRegion> restored_;  // and not shown yet
  std::uint64_t asked_ = 0;              // the serial number of the model that a region was asked of; 0: none
  AwaitedTask<Result> task_;             // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
