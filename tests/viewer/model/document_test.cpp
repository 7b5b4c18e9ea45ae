// Tests the opening of files: a graph as text is known by its content, whatever its name is.
#include <tapedeck/tests/viewer/folder.h>
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/planning/replay_values.h>

#include <gtest/gtest.h>

namespace tapedeck::viewer {
namespace {

TEST(OpenDocument, TheTextOfAGraphOpensUnderAnyName) {
  const Folder folder;
  const std::string text = training_graph(3);
  for (const char* name : {"step.graph", "step.txt", "step", "step.tape"}) {
    const std::string path = folder.write(name, "// of yesterday\n" + text);
    const Document document = open_document(path);
    EXPECT_EQ(print(*document.captured), print(parse(text))) << name;
    EXPECT_GT(replay_values(path, *document.captured).stand_ins, 0) << name;
  }
}

TEST(OpenDocument, AFileOfAnotherKindIsToldByIt) {
  const Folder folder;
  const std::string path = folder.write("w.npy", "\x93NUMPY and the array");
  try {
    open_document(path);
    FAIL() << "it was opened";
  } catch (const FileError& error) {
    EXPECT_EQ(error.what(), path + ": not a tape, but a .npy array");
  }
}

}  // namespace
}  // namespace tapedeck::viewer
