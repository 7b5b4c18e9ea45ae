// What the fuzz targets share: files in memory, bounds on what is run, and the comparison of a replay with eager execution.
//
// A target is a function over bytes. It lets no exception out but that of a find: an Error is the documented answer to bad
// input, and everything else (a crash, a report of a sanitizer, a hang, another exception, a wrong result) ends the process.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tapedeck::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file that lies in memory and has a path, for readers that open their files themselves.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  int descriptor_ = -1;
  std::string path_;
};

// Whether a graph is small enough to be run here: few nodes, few bytes, little work, and no loop whose number of passes only a
// run can tell.
bool can_run(const Graph& graph);

// Replays the plan once, under TAPEDECK_POISON, and compares with the eager execution of `graph`, which has the same inputs and
// state. Where eager code refuses to run the graph, nothing is compared, and the replay may refuse too.
void replay_and_compare(const Plan& plan, const Graph& graph);

// Ends the process, so that the fuzzer keeps the input.
[[noreturn]] void find(const std::string& what);

// An imported graph verifies, and prints as a text that parses to the same text; else this is a find.
void expect_text_of(const Graph& graph);

// Runs `f` and swallows the errors that are documented.
void expect_only_errors(const std::function<void()>& f);

}  // namespace tapedeck::fuzz
