#include <tapedeck/viewer/screenshot.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/panels/table.h>
#include <tapedeck/viewer/plan/delta_table.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/session_keeper.h>
#include <tapedeck/viewer/start/start_page.h>
#include <tapedeck/viewer/window.h>

#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace tapedeck::viewer {

namespace {

void show_unseen(QWidget& widget, int width, int height) {
  widget.setAttribute(Qt::WA_DontShowOnScreen, widget.isWindow());
  widget.resize(width, height);
  widget.show();
  // A few rounds of events let layouts settle and canvases draw their last frames.
  for (int i = 0; i < 6; ++i) QCoreApplication::processEvents();
}

// Widens columns of texts that are cut, as far as there is room.
void use_spare_width(TablePanel& panel) {
  const TableLayout& layout = layout_of(panel.id());
  const QAbstractItemView& items = *panel.table();
  QHeaderView& header = *panel.table()->header();
  int place = header.count() - 1;
  while (place > 0 && header.isSectionHidden(header.logicalIndex(place))) --place;
  const int last = header.logicalIndex(place);
  const bool stretches = header.stretchLastSection();
  // A sentence in the last column may be cut for names, which say what the row is; Qt makes the column no narrower than it was
  // at first.
  const int size = header.sectionSize(last), first_size = qRound(layout.columns[last].width * look_in_use().scale);
  int spare = stretches ? std::max(size - items.sizeHintForColumn(last), std::min(size / 3, size - first_size))
                        : items.viewport()->width() - header.length();
  for (int c = 0; c < header.count(); ++c) {
    if (header.isSectionHidden(c) || is_number(layout.columns[c].kind) || (stretches && c == last)) continue;
    const int most = layout.columns[c].kind == ColumnKind::name ? spare * 2 / 3 : spare;  // names leave some for the rest
    const int more = std::clamp(items.sizeHintForColumn(c) - header.sectionSize(c), 0, std::max(most, 0));
    header.resizeSection(c, header.sectionSize(c) + more);
    spare -= more;
  }
}

void write_widget(const Options& options, QWidget& widget) {
  show_unseen(widget, options.width, options.height);
  if (auto* table = dynamic_cast<TablePanel*>(&widget)) use_spare_width(*table);
  if (auto* recompute = dynamic_cast<RecomputePanel*>(&widget)) use_spare_width(recompute->table());
  export_widget(options.shot, widget, options.width, options.height);
}

// The windows that commands have opened and that no picture shows: a person is told why.
void tell_about_other_windows(const Options& options, const MainWindow& window) {
  const QList<QWidget*> dialogs = open_dialogs(window);
  for (const QWidget* other : QApplication::topLevelWidgets()) {
    const bool is_dialog = dialogs.contains(other);
    if (other == &window || !other->isVisible() || other->windowTitle().isEmpty() || (is_dialog && options.panel.empty()))
      continue;
    std::fprintf(stderr, "tapedeck-viewer: a command has opened the window \"%s\", which %s\n",
                 other->windowTitle().toUtf8().constData(),
                 is_dialog ? "is in a picture of the whole window, and not in that of a panel" : "is not in the picture");
  }
}

void write_picture(const Options& options, Picture& picture) {
  export_picture(options.shot, picture, options.width, options.height, look_in_use().scale);
}

void write_shot(const Options& options, MainWindow& window) {
  tell_about_other_windows(options, window);
  if (options.panel.empty()) {
    show_unseen(window, options.width, options.height);
    return export_window(options.shot, window, options.width, options.height);
  }
  const MainWindow::OpenPanel& open = window.panel(options.panel);
  if (open.picture) return write_picture(options, *open.picture);
  // The panel leaves its dock, so that it can have any size. It returns to the dock, which destroys it.
  struct Outside {
    explicit Outside(QWidget* widget) : panel(widget), dock(widget->parentWidget()) { panel->setParent(nullptr); }
    ~Outside() { panel->setParent(dock); }
    QWidget *panel, *dock;
  };
  const Outside outside(open.widget);
  write_widget(options, *open.widget);
}

void write_delta_table(const std::string& path, const MatchedPlans& plans) {
  const Table table = make_delta_table(plans);
  std::ostringstream text;
  table.write_csv(text, table.all_rows());
  AtomicWriter out(path);
  out.write(text.str());
  out.commit();
}

// Of the plan that keeps everything; a picture of the whole window has it, too.
bool draws_outline(const std::string& panel) { return panel.empty() || panel == "memory" || panel == "curve"; }

int finish(const Plan& plan) {
  if (plan.feasible || plan.budget_bytes < 0) return kOk;
  std::fprintf(stderr, "tapedeck-viewer: %s\n", grouped_numbers(plan.infeasible_reason).c_str());
  return kInfeasible;
}

}  // namespace

int take_shot(const Options& options) {
  try {
    if (!options.compare.empty()) {
      const ComparedPlan left = load_compared(options.file), right = load_compared(options.compare, options.budget);
      ComparePicture picture(left, right, options.look_after_run({}));
      if (!options.csv.empty()) write_delta_table(options.csv, picture.plans());
      if (!options.shot.empty()) write_picture(options, picture);
      return finish(right.model->plan());
    }
    if (options.panel == "start") {
      StartPage page({[](const std::string&, const Budget&, bool) {}, [] {}, [] { return QStringList(); },
                      [](const std::string&) {}, [] {}, [] { return std::string("recordings"); }, [] {}});
      write_widget(options, page);
      return kOk;
    }
    MainWindow::Setup setup;
    setup.renderer = choose_renderer(options.renderer == Renderer::gl ? Renderer::gl : Renderer::soft, &setup.renderer_text);
    setup.remember = false;
    setup.prepares = false;
    setup.costs = options.costs;
    setup.profile = options.profile;
    setup.sessions = options.sessions();
    MainWindow window(setup);
    window.open(options.file, options.budget);
    window.wait_for_measuring();
    if (!window.error().empty()) {
      std::fprintf(stderr, "tapedeck-viewer: %s: %s\n", options.file.c_str(), window.error().c_str());
      return kBadFile;
    }
    if (const std::string& note = window.keeper().message(); !note.empty())
      std::fprintf(stderr, "tapedeck-viewer: %s\n", note.c_str());
    if (!options.shot.empty() && draws_outline(options.panel)) window.outline_keep_all();
    if (!options.run.empty()) {
      show_unseen(window, options.width, options.height);  // a command may need the size and the focus of a shown window
      if (!options.panel.empty()) window.panel(options.panel).widget->setFocus();
      window.run(options.run);
    }
    if (!window.measuring_error().empty()) {
      std::fprintf(stderr, "tapedeck-viewer: %s\n", window.measuring_error().c_str());
      return kBadFile;
    }
    window.finish(options.panel.empty() ? "details" : options.panel);
    if (!options.csv.empty()) window.write_csv(options.panel, options.csv);
    if (!options.shot.empty()) write_shot(options, window);
    return finish(window.session().model()->plan());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tapedeck-viewer: %s\n", error.what());
    return kBadFile;
  }
}

}  // namespace tapedeck::viewer
