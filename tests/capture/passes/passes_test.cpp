// Tests passes against golden files. Each passes/<pass>.graph holds cases: `// case: reason`, a graph, `// becomes`, and
// then the expected graph, `same`, or `// error: message`. A reason that begins with "fast_math:" switches this option on.
// TAPEDECK_UPDATE_GOLDEN=1 writes the actual results into the files, so that a reviewer reads the difference. Other tests
// are about the pass registry and about the wrapper that runs every pass.
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/text/text.h>

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

std::string pass_text(const std::string& name, const std::string& why, const std::string& input) {
  const Pass& pass = pass_named(name);
  const Graph graph = parse(input, name);
  PassOptions options = pass.asked_for ? pass.sample : PassOptions{};
  options.fast_math = starts_with(why, "fast_math:");
  try {
    const Graph result = run_pass(pass, graph, options);
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
      const std::string got = pass_text(golden.pass, c.why, c.input);
      if (!update) {
        EXPECT_EQ(got, c.wanted) << golden.pass << ": " << c.why;
      }
      c.wanted = got;
    }
    if (update) write_golden(entry.path(), golden);
  }
  EXPECT_EQ(static_cast<std::size_t>(files), all_passes().size()) << "every pass has a golden file";
}

TEST(Passes, AreIdempotent) {
  for (const auto& entry : std::filesystem::directory_iterator(TAPEDECK_SOURCE_DIR "/tests/capture/passes")) {
    if (entry.path().extension() != ".graph") continue;
    const GoldenFile golden = read_golden(entry.path());
    for (const GoldenCase& c : golden.cases) {
      const std::string once = pass_text(golden.pass, c.why, c.input);
      if (once == "same\n") continue;
      EXPECT_EQ(pass_text(golden.pass, c.why, once), "same\n") << golden.pass << ": " << c.why;
    }
  }
}

// ---- the registry of passes ----

TEST(PassRegistry, EveryPassDoesWhatItSaysOfItself) {
  EXPECT_GE(all_passes().size(), 7u);
  for (const Pass* pass : all_passes()) {
    EXPECT_GT(std::string(pass->doc).size(), 10u) << pass->name;
    EXPECT_EQ(print(parse(pass->before)), pass->before) << pass->name;
    EXPECT_EQ(print(run_pass(*pass, parse(pass->before), pass->sample)), pass->after) << pass->name;
  }
}

TEST(PassRegistry, FindsByNameAndAliasAndSuggests) {
  EXPECT_EQ(&pass_named("dce"), &pass_named("dead_code"));
  EXPECT_EQ(find_pass("nosuch"), nullptr);
  try {
    pass_named("dead_cod");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("unknown pass 'dead_cod': did you mean 'dead_code'?"), std::string::npos) << e.what();
  }
  EXPECT_THROW(register_pass({.name = "cse"}), UsageError);
  EXPECT_THROW(register_pass({.name = "new", .aliases = {"dce"}}), UsageError);
}

TEST(PassRegistry, TheReadmeListsEveryPass) {
  std::ifstream stream(TAPEDECK_SOURCE_DIR "/capture/passes/README.md");
  const std::string readme((std::istreambuf_iterator<char>(stream)), {});
  for (const Pass* pass : all_passes())
    EXPECT_NE(readme.find("| `" + std::string(pass->name) + "` | " + pass->doc + " |"), std::string::npos)
        << "no row: | `" << pass->name << "` | " << pass->doc << " |";
}

// ---- PassRunner, which wraps every pass ----

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

const char* const kDuplicates = "graph g(%x: f32[4]) {\n%a: f32[4] = exp(%x)\n%b: f32[4] = exp(%x)\nreturn %a, %b\n}\n";

TEST(PassRunner, StopsBetweenPasses) {
  std::atomic<bool> cancel{false};
  int ran = 0;
  PassRunner runner;
  runner.cancel_by(&cancel);
  const auto pass = [&](Graph g) {
    cancel = ++ran == 2;
    return g;
  };
  const Graph g = parse("graph f(%x: f32[2]) { return %x }");
  runner.run("first", g, pass);
  EXPECT_THROW(runner.run("second", g, pass), Cancelled) << "the flag went up in the pass";
  EXPECT_THROW(runner.run("dead_code", g), Cancelled) << "it is up before the pass";
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(runner.records().size(), 1u);
}

TEST(PassRunner, RunsTimesAndCounts) {
  PassRunner runner;
  const Graph result = runner.run("cse", parse(kDuplicates), cse);
  EXPECT_EQ(result.node_count(), 1);
  ASSERT_EQ(runner.records().size(), 1u);
  EXPECT_EQ(runner.records()[0].nodes_before, 2);
  EXPECT_EQ(runner.records()[0].nodes_after, 1);
  EXPECT_FALSE(runner.records()[0].skipped);
  EXPECT_EQ(runner.records()[0].bytes_before, 48);  // the bytes of %x, %a and %b
  EXPECT_EQ(runner.records()[0].bytes_after, 32);
}

TEST(PassRunner, RunsRegisteredPassesByName) {
  PassRunner runner;
  EXPECT_EQ(runner.run("cse", parse(kDuplicates)).node_count(), 1);
  EXPECT_THROW(runner.run("csee", parse(kDuplicates)), UsageError);
}

TEST(PassRunner, RefusesToDisableWhatIsNoPass) {
  const Environment disabled("TAPEDECK_DISABLE_PASSES", "dead_cdoe");
  EXPECT_THROW(PassRunner(), UsageError);
}

TEST(PassRunner, SkipsWhatIsDisabledUnlessNeeded) {
  const Environment disabled("TAPEDECK_DISABLE_PASSES", "dce,cse");
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
    runner.run("cse", once, cse);  // this run changes nothing
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

// With Looks::at_none the wrapper verifies and measures nothing after a pass. TAPEDECK_DEBUG makes it verify anyway, and
// then it names the pass.
TEST(PassRunner, LooksAtNothingIfNobodyAsks) {
  const auto breaks = [](Graph g) {
    g.nodes[0].first_output = 99;
    return g;
  };
  PassRunner blind({}, Looks::at_none);
  EXPECT_NO_THROW(blind.run("breaker", parse(kDuplicates), breaks));
  EXPECT_EQ(blind.records()[0].bytes_before, 0);
  const Environment debug("TAPEDECK_DEBUG", "1");
  PassRunner seeing({}, Looks::at_none);
  EXPECT_THROW(seeing.run("breaker", parse(kDuplicates), breaks), InvalidGraphError);
}

// A pass without anything to do returns the graph that it got, without a copy, because planning a step is often in a hurry.
TEST(PassRunner, GraphsWithNothingToDoAreHandedOn) {
  const char* const text = "graph g(%x: f32[4], %y: f32[4]) {\n%a: f32[4] = exp(%x)\n%b: f32[4] = mul(%a, %y)\nreturn %b\n}\n";
  for (const char* name : {"dead_code", "loop_results", "drop_copies", "fold_views", "constant_folding", "algebra", "cse",
                           "chain_joins", "gradient_sums", "insert_copies"}) {
    PassRunner runner({}, Looks::at_none);
    Graph graph = parse(text);
    const Node* const nodes = graph.nodes.data();
    const Graph result = runner.run(name, std::move(graph));
    EXPECT_EQ(result.nodes.data(), nodes) << name;
  }
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
