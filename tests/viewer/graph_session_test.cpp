// Tests that a session keeps the part of the graph in view: of the step, and of the body of a loop.
#include <tapedeck/tests/viewer/loops.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/saved/saved_session.h>
#include <tapedeck/viewer/session_keeper.h>

namespace tapedeck::viewer {
namespace {

class GraphSession : public ::testing::Test {
 protected:
  void open(const std::string& file) {
    window.start_opening(file);
    ASSERT_TRUE(spin_until([&] { return !window.opening() && window.session().model() && !window.session().solving(); }));
    window.show_panel("graph");
    ASSERT_TRUE(spin_until([&] { return window.graph().settled() && canvas().settled(); }));
  }
  Canvas& canvas() { return *window.panel("graph").canvas; }
  void zoom_and_move() {
    const CanvasBox plot = window.graph().view().plot();
    wheel(canvas(), ImVec2(plot.x0 + plot.width() / 3, plot.y0 + plot.height() / 3), 3);
    wheel(canvas(), ImVec2(plot.x0 + plot.width() / 2, plot.y0 + 20), 1);
  }

  Folder folder;
  std::string loops = folder.write("loops.graph", graph_with_loops()), other = folder.write("other.graph", training_graph(3));
  MainWindow window{{.renderer = Renderer::soft, .remember = false, .prepares = false, .sessions = Sessions::read_and_write}};
};

TEST_F(GraphSession, ThePartInViewIsThereAgain) {
  window.resize(1200, 700);
  window.show();
  open(loops);
  EXPECT_FALSE(window.keeper().now().graph_region.place.view);  // nobody has moved it
  for (const bool in_loop : {false, true}) {
    if (in_loop) {
      const Graph& graph = window.session().model()->graph();
      NodeId loop = 0;
      while (graph.nodes[static_cast<std::size_t>(loop)].n_regions == 0) ++loop;
      window.graph().enter(loop, 0);
      ASSERT_TRUE(spin_until([&] { return window.graph().settled(); }));
    }
    zoom_and_move();
    const GraphView before = window.graph().view();
    const SavedRegion saved = window.keeper().now().graph_region;
    ASSERT_TRUE(saved.place.view);
    EXPECT_EQ(saved.path.empty(), !in_loop);
    open(other);
    EXPECT_FALSE(window.graph().view().is_moved());
    open(loops);
    const GraphView& after = window.graph().view();
    for (const float x : {0.0f, 300.0f}) {
      EXPECT_NEAR(after.x_of(x), before.x_of(x), 0.01) << in_loop;
      EXPECT_NEAR(after.y_of(x), before.y_of(x), 0.01) << in_loop;
    }
    EXPECT_EQ(window.keeper().now().graph_region, saved) << in_loop;  // exactly, so that looking is no change
    zoom_and_move();
    EXPECT_FALSE(window.keeper().now().graph_region == saved) << in_loop;
  }
}

// A session file may have been written by hand.
TEST_F(GraphSession, AViewFarAwayAndMuchTooCloseIsBroughtBack) {
  window.resize(1200, 700);
  window.show();
  open(loops);
  zoom_and_move();
  window.keeper().save();
  SavedSession session = read_session(read(window.keeper().written_path()));
  session.graph_region.place.view = PlanView{{1e9, 1e9 + 1}, {-1e9, -1e9 + 1e-6}};
  open(other);
  std::ofstream(loops + ".session", std::ios::trunc) << session_text(session);
  open(loops);
  const GraphView& view = window.graph().view();
  EXPECT_LE(view.scale(), GraphView::kMost);
  const CanvasBox& plot = view.plot();
  const double x = view.x_at((plot.x0 + plot.x1) / 2), y = view.y_at((plot.y0 + plot.y1) / 2);
  EXPECT_TRUE(x >= 0 && x <= window.graph().scene()->layout.width + 1) << x;
  EXPECT_TRUE(y >= 0 && y <= window.graph().scene()->layout.height + 1) << y;
}

}  // namespace
}  // namespace tapedeck::viewer
