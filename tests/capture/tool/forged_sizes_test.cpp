// A file may claim any sizes for its model. The tool records no model of these sizes to see whether they are true.
#ifdef TAPEDECK_TOOL

#include <tapedeck/capture/file/file.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace tapedeck {
namespace {

TEST(ForgedSizes, AFileWithFewerNodesThanLayersIsRefusedAtOnce) {
  if (!std::filesystem::exists(TAPEDECK_TOOL)) GTEST_SKIP() << "this build has no tool";  // that of the thread sanitizer
  const TemporaryFolder folder;
  TapeFile file;
  file.captured = parse("graph g(%x: f32[8]) {\n  %a: f32[8] = exp(%x)\n  return %a\n}");
  file.metadata = {{"model", "mlp_attention"}, {"optimizer", "sgd"}, {"dtype", "f32"}, {"layers", "100000000"}};
  save_tape(folder.file("forged.tape"), file);
  const std::string command = "timeout 60 " TAPEDECK_TOOL " replay " + folder.file("forged.tape") + " --dims layers=2 > " +
                              folder.file("out") + " 2> " + folder.file("err");
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  const std::string error = read_all(folder.file("err"));
  EXPECT_NE(error.find("the graph is not, or no longer, the one that the model mlp_attention records"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace tapedeck

#endif
