#include <tapedeck/viewer/guided_tour.h>

#include <tapedeck/viewer/command_palette.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/window.h>

#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSlider>

#include <memory>

namespace tapedeck::viewer {

namespace {

QWidget* open_panel(MainWindow& w, const char* name) {
  w.show_panel(name);
  return w.panel(name).widget;
}

// Selects the first value that the plan computes again, if it is not already one that is selected.
void select_recomputed(MainWindow& w) {
  const PlanModel* model = w.session().model();
  if (model == nullptr) return;
  const auto is_recomputed = [&](ValueId v) {
    return v != kNone && model->values().entry(v).choice == ValueChoice::recomputed;
  };
  if (is_recomputed(w.session().selection().value)) return;
  for (const ValueEntry& entry : model->values().log())
    if (entry.choice == ValueChoice::recomputed) return w.session().select_value(entry.copies.front());
}

TourStep plan_step(MainWindow& w) {
  return {"The memory plan",
          "Every rectangle is a value of one training step. Addresses go up and the schedule goes to the right, so a wide "
          "rectangle is a value that is kept for long, and a tall one has many bytes. The line at the top is the peak.",
          "click a rectangle. The wheel zooms, a drag moves, H shows all again.",
          [&w] {
            w.session().clear_selection();
            return open_panel(w, "memory");
          },
          [&w] { return w.session().selection().value != kNone; }};
}

TourStep budget_step(MainWindow& w) {
  auto before = std::make_shared<Budget>();
  return {"The budget",
          "The slider says how many bytes a step may hold. With less than the plan needs, values are dropped after forward "
          "and computed again in backward: memory is bought with time. The status bar shows both.",
          "drag the slider to the left, or click it and press Page Down.",
          [&w, before] {
            *before = w.budget();
            return static_cast<QWidget*>(&w.slider());
          },
          [&w, before] { return w.budget() != *before; }};
}

TourStep recompute_step(MainWindow& w) {
  return {"A value that is computed again",
          "The selected value is not kept. The panel Recompute lists every such choice with its reason, and with what the "
          "other choice would cost in bytes and in time.",
          "press K over the memory plan to wish the value kept. Ctrl+Z takes the wish back.",
          [&w] {
            select_recomputed(w);
            QWidget* panel = open_panel(w, "recompute");
            w.memory_canvas().setFocus();
            return panel;
          },
          [&w] { return !w.session().wishes().empty(); }};
}

TourStep compare_step(MainWindow& w) {
  return {"Before and after",
          "A comparison matches the values of two plans, and lists what became of each. Here it shows what your last change "
          "did. Ctrl+D compares with another file.",
          "press Ctrl+Shift+D, look at both plans, and close that window.",
          [&w]() -> QWidget* {
            w.memory_canvas().setFocus();
            return nullptr;
          },
          comparison_is_open};
}

TourStep measure_step(MainWindow& w) {
  return {"Planned and measured",
          "The curve is the bytes that are alive at each node. A replay of the plan holds as many bytes as were planned, to "
          "the byte: the measured peak is drawn into the planned one.",
          "press Ctrl+M to replay the step.", [&w] { return open_panel(w, "curve"); },
          [&w] {
            const PlanModel* model = w.session().model();
            return model != nullptr && w.session().measurements().of_plan(*model) != nullptr;
          }};
}

TourStep inspect_step(MainWindow& w) {
  return {"The numbers of a value",
          "The inspector runs one step of the plan and pauses at any node, forward and backward. It shows the numbers of the "
          "selected value. A value whose bytes were given to others is computed again beside the step.",
          "press F5 to run the step to its end, then click values.", [&w] { return open_panel(w, "inspector"); },
          [&w] { return w.inspector().at().done > 0; }};
}

TourStep graph_step(MainWindow& w) {
  auto before = std::make_shared<OpenModules>();
  return {"The graph",
          "Forward is on the left, backward on the right beside it, and clones stand beside their originals. The panels Text "
          "and Schedule show the same nodes: a selection is one in all of them.",
          "click a module and press O to open it.",
          [&w, before] {
            *before = w.graph().open_modules();
            return open_panel(w, "graph");
          },
          [&w, before] { return w.graph().open_modules() != *before; }};
}

TourStep last_step(MainWindow& w) {
  return {"Everything else",
          "All commands are in the menus, with their keys. Ctrl+E writes what you see as PNG, SVG or PDF; Ctrl+Home brings "
          "the start page, where you record a model of your own size. Every plan can be had without the window, too: the "
          "menu Edit copies the line of the tool.",
          "press Ctrl+Shift+P and type a few letters to find a command.", [&w] { return static_cast<QWidget*>(w.menuBar()); },
          [&w] { return open_palette(w) != nullptr; }};
}

}  // namespace

std::vector<TourStep> tour_steps(MainWindow& w) {
  return {plan_step(w),    budget_step(w),  recompute_step(w), compare_step(w),
          measure_step(w), inspect_step(w), graph_step(w),     last_step(w)};
}

}  // namespace tapedeck::viewer
