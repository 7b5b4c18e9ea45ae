// Golden files of the passes: passes/<pass>.graph holds cases of `// case: why`, a graph, `// becomes`, and the result, `same`,
// or
// `// error: message`. TAPEDECK_UPDATE_GOLDEN=1 writes what comes out into the files; the difference is the review.
#include <tapedeck/capture/passes/pass.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/engine/text.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tapedeck {
namespace {

struct GoldenCase {
  std::string why, input, wanted;
};

struct GoldenFile {
  std::string pass;
  std::vector<GoldenCase> cases;
};

bool starts_with(const std::string& line, const std::string& head) { return line.rfind(head, 0) == 0; }

GoldenFile read_golden(const std::filesystem::path& path) {
  GoldenFile golden;
  std::ifstream stream(path);
  std::string* into = nullptr;
  for (std::string line; std::getline(stream, line);) {
    if (starts_with(line, "// pass: "))
      golden.pass = line.substr(9);
    else if (starts_with(line, "// case: "))
      into = &golden.cases.emplace_back(GoldenCase{line.substr(9), "", ""}).input;
    else if (line == "// becomes" && !golden.cases.empty())
      into = &golden.cases.back().wanted;
    else if (into && !line.empty())
      *into += line + "\n";
  }
  return golden;
}

void write_golden(const std::filesystem::path& path, const GoldenFile& golden) {
  std::ofstream stream(path);
  stream << "// pass: " << golden.pass << "\n";
  for (const GoldenCase& c : golden.cases)
    stream << "// case: " << c.why << "\n" << c.input << "// becomes\n" << c.wanted << "\n";
}

std::string run_pass(const std::string& pass, const std::string& input) {
  const Graph graph = parse(input, pass);
  try {
    const Graph result = pass == "cse" ? cse(graph) : pass == "dead_code" ? dead_code(graph) : insert_copies(graph);
    verify(result);
    const std::string text = print(result);
    return text == print(graph) ? "same\n" : text;
  } catch (const Error& e) {
    return std::string("// error: ") + e.what() + "\n";
  }
}

TEST(Passes, GoldenFiles) {
  const bool update = std::getenv("TAPEDECK_UPDATE_GOLDEN") != nullptr;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TAPEDECK_SOURCE_DIR "/tests/capture/passes")) {
    if (entry.path().extension() != ".graph") continue;
    ++files;
    GoldenFile golden = read_golden(entry.path());
    ASSERT_EQ(golden.pass, entry.path().stem()) << entry.path();
    EXPECT_FALSE(golden.cases.empty());
    for (GoldenCase& c : golden.cases) {
      const std::string got = run_pass(golden.pass, c.input);
      if (!update) {
        EXPECT_EQ(got, c.wanted) << golden.pass << ": " << c.why;
      }
      c.wanted = got;
    }
    if (update) write_golden(entry.path(), golden);
  }
  EXPECT_EQ(files, 3) << "every pass has a golden file";
}

TEST(Passes, AreIdempotent) {
  for (const auto& entry : std::filesystem::directory_iterator(TAPEDECK_SOURCE_DIR "/tests/capture/passes")) {
    const GoldenFile golden = read_golden(entry.path());
    for (const GoldenCase& c : golden.cases) {
      const std::string once = run_pass(golden.pass, c.input);
      if (once == "same\n") continue;
      EXPECT_EQ(run_pass(golden.pass, once), "same\n") << golden.pass << ": " << c.why;
    }
  }
}

// ---- the wrapper ----

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

const char* const kDuplicates = "graph g(%x: f32[4]) {\n%a: f32[4] = exp(%x)\n%b: f32[4] = exp(%x)\nreturn %a, %b\n}\n";

TEST(PassRunner, RunsTimesAndCounts) {
  PassRunner runner;
  const Graph result = runner.run("cse", parse(kDuplicates), cse);
  EXPECT_EQ(result.node_count(), 1);
  ASSERT_EQ(runner.records().size(), 1u);
  EXPECT_EQ(runner.records()[0].nodes_before, 2);
  EXPECT_EQ(runner.records()[0].nodes_after, 1);
  EXPECT_FALSE(runner.records()[0].skipped);
}

TEST(PassRunner, SkipsWhatIsDisabledUnlessNeeded) {
  const Environment disabled("TAPEDECK_DISABLE_PASSES", "dead_code,cse");
  PassRunner runner;
  EXPECT_EQ(runner.run("cse", parse(kDuplicates), cse).node_count(), 2);
  EXPECT_TRUE(runner.records()[0].skipped);
  EXPECT_EQ(runner.run("cse", parse(kDuplicates), cse, PassRunner::Need::always).node_count(), 1);
}

TEST(PassRunner, DumpsNumberedFilesOfWhatChanged) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("tapedeck_dump_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  {
    const Environment dump("TAPEDECK_DUMP", folder.string());
    PassRunner runner;
    const Graph once = runner.run("cse", parse(kDuplicates), cse);
    runner.run("cse", once, cse);  // changes nothing
    runner.run("dead_code", once, [](Graph g) {
      g.name = "renamed";
      return g;
    });
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "01-cse.graph"));
  EXPECT_TRUE(std::filesystem::exists(folder / "02-dead_code.graph"));
  EXPECT_FALSE(std::filesystem::exists(folder / "03-dead_code.graph"));
  std::filesystem::remove_all(folder);
}

TEST(PassRunner, NamesThePassThatBrokeTheGraph) {
  PassRunner runner;
  try {
    runner.run("breaker", parse(kDuplicates), [](Graph g) {
      g.outputs.push_back(1000);
      return g;
    });
    FAIL();
  } catch (const InvalidGraphError& e) {
    EXPECT_NE(std::string(e.what()).find("pass breaker broke the graph"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tapedeck
