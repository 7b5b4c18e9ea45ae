// Files that are opened in the background: the loader, and the window around it.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/viewer/planning/document_loader.h>

#include <QtWidgets/QMessageBox>
#include <QtWidgets/QToolButton>

namespace tapedeck::viewer {
namespace {

TEST(DocumentLoader, GivesWhatOpeningInThisThreadGives) {
  Folder folder;
  const std::string path = folder.write("step.graph", training_graph(6));
  int woken = 0;
  DocumentLoader loader([&] { ++woken; });
  loader.start({path});
  EXPECT_TRUE(loader.busy());
  const auto result = loader.wait();
  ASSERT_TRUE(result && result->file) << (result ? result->error : "no result");
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(loader.busy());
  EXPECT_FALSE(loader.take());
  EXPECT_EQ(result->file->document.title(), open_document(path).title());
  EXPECT_EQ(result->file->model, nullptr) << "a graph has no plan, and none was asked for";
}

TEST(DocumentLoader, MakesThePlanOfTheBudgetWhereOneIsAskedFor) {
  Folder folder;
  const std::string path = folder.write("step.graph", training_graph(6));
  DocumentLoader loader([] {});
  loader.start({path, CostSource::best, {-1, 60}, true});
  const auto result = loader.wait();
  ASSERT_TRUE(result && result->file);
  const Document document = open_document(path);
  PlanOptions options = document.options;
  options.budget_percent = 60;
  const Plan plan = make_plan(*document.captured, options);
  EXPECT_EQ(result->file->model->plan().peak_bytes, plan.peak_bytes);
  EXPECT_EQ(result->file->model->plan().nodes, plan.nodes);
}

TEST(DocumentLoader, OnlyTheNewestLoadIsDelivered) {
  Folder folder;
  const std::string first = folder.write("first.graph", training_graph(40)),
                    second = folder.write("second.graph", training_graph(2));
  DocumentLoader loader([] {});
  for (int i = 0; i < 20; ++i) {
    loader.start({first});
    loader.start({second});
    const auto result = loader.wait();
    ASSERT_TRUE(result && result->file);
    EXPECT_EQ(result->file->document.name, "second.graph");
    EXPECT_FALSE(loader.busy());
  }
}

TEST(DocumentLoader, NothingIsDeliveredAfterACancel) {
  Folder folder;
  const std::string path = folder.write("step.graph", training_graph(10));
  DocumentLoader loader([] {});
  loader.start({path});
  loader.cancel();
  EXPECT_FALSE(loader.busy());
  EXPECT_FALSE(loader.wait());
  std::atomic<bool> cancelled{true};
  EXPECT_THROW(load_file({path}, &cancelled), Cancelled);
}

TEST(DocumentLoader, AnErrorIsItsText) {
  Folder folder;
  DocumentLoader loader([] {});
  loader.start({folder.file("missing.tape")});
  const auto result = loader.wait();
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->file);
  EXPECT_NE(result->error.find("missing.tape"), std::string::npos) << result->error;
}

class Opening : public Window {
 protected:
  std::string title() { return window.session().document()->name; }
  QToolButton* cancel_button() {
    for (QToolButton* button : window.findChildren<QToolButton*>())
      if (button->text() == QStringLiteral("Cancel")) return button;
    return nullptr;
  }
};

TEST_F(Opening, TheOldDocumentStaysUntilTheNewOneIsThere) {
  window.start_opening(folder.write("other.graph", training_graph(3)));
  EXPECT_TRUE(window.opening());
  EXPECT_EQ(title(), "step.graph");
  EXPECT_EQ(window.session().opening(), "other.graph");
  EXPECT_TRUE(cancel_button()->isVisible());
  ASSERT_TRUE(spin_until([&] { return !window.opening(); }));
  EXPECT_EQ(title(), "other.graph");
  EXPECT_TRUE(window.session().opening().empty());
  EXPECT_FALSE(cancel_button()->isVisible());
  window.wait_for_plan();
  EXPECT_EQ(window.session().document()->captured->node_count(), 13);
  EXPECT_EQ(window.session().model()->graph().name.str(), "step");
}

TEST_F(Opening, WaitingForThePlanWaitsForTheFileToo) {
  window.start_opening(folder.write("other.graph", training_graph(3)), {-1, 80});
  window.wait_for_plan();
  EXPECT_FALSE(window.opening());
  EXPECT_EQ(title(), "other.graph");
  EXPECT_GT(window.session().model()->plan().budget_bytes, 0);
}

TEST_F(Opening, EscapeAndTheButtonCancel) {
  const std::uint64_t before = window.session().model()->serial();
  window.session().select_node(3);
  const std::string path = folder.write("other.graph", training_graph(200));
  window.start_opening(path);
  press(window, Qt::Key_Escape);
  EXPECT_FALSE(window.opening());
  EXPECT_EQ(window.session().selection().node, 3) << "this key cancels first";
  window.start_opening(path);
  click_widget(*cancel_button());
  EXPECT_FALSE(window.opening());
  for (int i = 0; i < 20; ++i) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
  EXPECT_EQ(title(), "step.graph");
  EXPECT_EQ(window.session().model()->serial(), before);
}

TEST_F(Opening, AnErrorGoesToTheCallerWhoAskedForIt) {
  std::string error;
  window.start_opening(folder.write("bad.graph", "graph nonsense {"), {}, [&](const std::string& text) { error = text; });
  ASSERT_TRUE(spin_until([&] { return !window.opening(); }));
  EXPECT_FALSE(error.empty());
  EXPECT_TRUE(window.findChildren<QMessageBox*>().isEmpty());
  EXPECT_EQ(title(), "step.graph");
}

}  // namespace
}  // namespace tapedeck::viewer
