// Opens files: the document, and the plan that the file holds, as a model. In the background, so that the UI thread only has to
// show them.
//
//     start(file) ----> thread: read, verify, draw up the plan ----> wake() ----> take()
//     start(other) or cancel(): the load before is dropped, and nothing is delivered for it
#pragma once

#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/saved/session_file.h>
#include <tapedeck/viewer/words/format.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tapedeck::viewer {

struct LoadRequest {
  std::string path;
  CostSource costs = CostSource::best;
  Budget budget{};           // with one, the plan in the file is not wanted
  bool plans = false;        // make the plan where it is not in the file
  SessionPlaces sessions{};  // where a session of the file may be; no places: none is read
};

struct LoadedFile {
  Document document;                       // without its plan, which is the model's
  std::shared_ptr<const PlanModel> model;  // null: there is no plan in the file, or another one is wanted
  Budget asked{};                          // the budget of the request, else of the session, else of the plan in the file
  std::string plan_mark{};                 // of the plan in the file (fit_session.h)
  FoundSession session{};                  // fitted to the file
};

// Loads in this thread. Throws the errors of open_document and make_plan; Cancelled.
LoadedFile load_file(const LoadRequest& request, const std::atomic<bool>* cancelled = nullptr);

// Only one thread (the UI's) may use it.
class DocumentLoader {
 public:
  struct Result {
    std::optional<LoadedFile> file;
    std::string error;  // why there is no file
  };

  // The thread of the loader calls `wake` when a result is there; `wake` must only post a message.
  explicit DocumentLoader(std::function<void()> wake) : task_(std::move(wake)) {}

  void start(LoadRequest request);                       // drops the load before
  void cancel() { task_.cancel(); }                      // drops the load
  bool busy() const { return task_.busy(); }             // a load was started and is neither taken nor dropped
  std::optional<Result> take() { return task_.take(); }  // once
  std::optional<Result> wait() { return task_.wait(); }  // blocks until the result is there; nothing if there is no load

 private:
  AwaitedTask<Result> task_;
};

}  // namespace tapedeck::viewer
