#include <tapedeck/viewer/saved/fit_session.h>

#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tapedeck::viewer {

namespace {

std::string mark_of(const std::string& text) {
  return checksum_text(checksum(Bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size())));
}

void forget_places(SavedSession* session) {
  const auto forget = [](SavedPlace* place) {
    place->view.reset();
    place->node = kNone;
  };
  forget(&session->place);
  forget(&session->memory_region.place);
  forget(&session->graph_region.place);
  for (Bookmark& bookmark : session->bookmarks) forget(&bookmark.place);
  std::erase_if(session->bookmarks, [](const Bookmark& bookmark) { return bookmark.place.empty(); });
  session->range = {};
}

// The file's own, as a session that asks for the same.
void take_request_of_file(const Document& document, SavedSession* session) {
  session->budget = {};
  if (document.plan) session->budget.bytes = document.plan->budget_bytes;
  session->wishes = document.options.wishes;
  session->strategy = strategy_name(document.options.strategy);
  session->recorded_order = document.options.ordering == Ordering::recorded;
}

bool has_meaning(const Wish& wish) {
  try {
    check_wishes({wish});
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// A pass may have made a value that the captured graph does not have, or have left one out.
std::vector<Wish> wishes_that_name_something(const Document& document, const std::vector<Wish>& wishes) {
  std::vector<Wish> readable, kept;
  for (const Wish& wish : wishes)
    if (has_meaning(wish)) readable.push_back(wish);
  const WishedValues captured = find_wished(*document.captured, readable);
  std::optional<WishedValues> prepared;
  for (std::size_t w = 0; w < readable.size(); ++w) {
    if (captured.named[w] == 0 && !prepared) {
      PassRunner passes({.level = document.options.level}, Looks::at_none);
      prepared = find_wished(prepare(*document.captured, &passes, document.options.sharing), readable);
    }
    if (captured.named[w] > 0 || prepared->named[w] > 0) kept.push_back(readable[w]);
  }
  return kept;
}

bool is_registered(const std::string& strategy) {
  try {
    strategy_named(strategy);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

std::string without(const std::vector<Wish>& all, const std::vector<Wish>& kept) {
  std::string list;
  for (const Wish& wish : all)
    if (std::find(kept.begin(), kept.end(), wish) == kept.end()) list += (list.empty() ? "" : ", ") + wish_text(wish);
  return list;
}

}  // namespace

std::string graph_mark(const Graph& graph) {
  PrintOptions options;
  options.notes = false;
  return mark_of(print(graph, options));
}

std::string plan_mark(const std::optional<Plan>& plan) {
  if (!plan) return "";
  std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {} {}", plan->budget_bytes, plan->peak_bytes, plan->arena_bytes,
                                 plan->graph.node_count(), plan->cost_us, plan->costs, plan->strategy, plan->order,
                                 plan->threads, plan->alignment, plan->chunk_bytes);
  const PlanRequest& asked = plan->asked;
  text += fmt::format(" {} {} {} {}", asked.strategy, asked.recorded_order, asked.segment_us, asked.parallel_peak);
  for (const Wish& wish : asked.wishes) text += "\n" + wish_text(wish);
  return mark_of(text);
}

std::vector<std::string> fit_session(const Document& document, SavedSession* session) {
  std::vector<std::string> notes;
  if (session->plan != plan_mark(document.plan)) {
    take_request_of_file(document, session);
    notes.emplace_back("the file has another plan since its session was saved: its own budget and wishes are shown");
  }
  if (session->graph != graph_mark(*document.captured)) {
    forget_places(session);
    notes.emplace_back("the graph has changed since the session was saved: views and numbers of nodes are forgotten");
  }
  const std::vector<Wish> all = session->wishes;
  session->wishes = wishes_that_name_something(document, all);
  if (session->wishes != all)
    notes.push_back("wishes of the session that name no value are left out: " + without(all, session->wishes));
  if (!is_registered(session->strategy)) {
    notes.push_back("the strategy of the session is not known here: " + session->strategy);
    session->strategy = strategy_name(document.options.strategy);
  }
  return notes;
}

bool asks_for(const SavedSession& session, const Plan& plan) {
  return session.budget == Budget{plan.budget_bytes, -1} && session.wishes == plan.asked.wishes &&
         session.strategy == plan.asked.strategy && session.recorded_order == plan.asked.recorded_order;
}

void take_options(const SavedSession& session, Document* document) {
  document->options.strategy = strategy_named(session.strategy);
  document->options.ordering = session.recorded_order ? Ordering::recorded : Ordering::automatic;
}

}  // namespace tapedeck::viewer
