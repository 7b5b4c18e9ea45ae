#include <tapedeck/viewer/planning/document_loader.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/saved/fit_session.h>

#include <utility>

namespace tapedeck::viewer {

namespace {

void stop_if(const std::atomic<bool>* cancelled) {
  if (cancelled != nullptr && *cancelled) throw Cancelled("opening the file was cancelled");
}

Plan plan_of(const Document& document, const LoadRequest& request, const std::atomic<bool>* cancelled) {
  PlanOptions options = document.options;
  options.budget = request.budget.bytes;
  options.budget_percent = request.budget.percent;
  options.cancel = cancelled;
  return make_plan(*document.captured, options);
}

// The source of costs of the request, or that of the session where the request leaves the choice.
Document open_for(const LoadRequest& request, FoundSession* session) {
  if (session->saved && request.costs == CostSource::best && session->saved->costs != CostSource::best) {
    try {
      return open_document(request.path, session->saved->costs);
    } catch (const UsageError& error) {
      session->notes.push_back("the costs of the session are not taken: " + std::string(error.what()));
    }
  }
  return open_document(request.path, request.costs);
}

void fit_to_file(FoundSession* session, Document* document) {
  if (!session->saved) return;
  for (std::string& note : fit_session(*document, &*session->saved)) session->notes.push_back(std::move(note));
  take_options(*session->saved, document);
}

Budget asked_budget(const LoadRequest& request, const LoadedFile& file, const std::optional<Plan>& plan) {
  if (request.budget.given()) return request.budget;
  if (file.session.saved) return file.session.saved->budget;
  return plan ? Budget{plan->budget_bytes, -1} : Budget();
}

}  // namespace

LoadedFile load_file(const LoadRequest& request, const std::atomic<bool>* cancelled) {
  stop_if(cancelled);
  FoundSession session = find_session(request.sessions);
  LoadedFile file{open_for(request, &session), nullptr};
  stop_if(cancelled);
  file.plan_mark = plan_mark(file.document.plan);
  fit_to_file(&session, &file.document);
  file.session = std::move(session);
  std::optional<Plan> plan = std::exchange(file.document.plan, std::nullopt);
  file.asked = asked_budget(request, file, plan);
  if (request.budget.given() || (plan && file.session.saved && !asks_for(*file.session.saved, *plan))) plan.reset();
  if (!plan && request.plans) plan = plan_of(file.document, request, cancelled);
  if (plan) file.model = PlanModel::of(std::move(*plan), file.document.options.costs, file.document.options.wishes);
  return file;
}

void DocumentLoader::start(LoadRequest request) {
  task_.start([request = std::move(request)](const std::atomic<bool>& cancelled) {
    return Result{load_file(request, &cancelled), {}};
  });
}

}  // namespace tapedeck::viewer
