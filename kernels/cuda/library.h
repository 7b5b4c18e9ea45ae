// Vendor libraries (cuBLASLt, cuDNN, NVRTC), opened on first use and never linked: they are hundreds of megabytes, cost up to a
// quarter of a second to load, and most runs need none of them. Each is reached through a table of function pointers that lists
// just the functions we call (lt_api.h, dnn_api.h, rtc_api.h); a missing library is a reason in words, never a crash. The same
// tables are where tests put fakes.
//
// A library is looked for in this order: the folder named by $TAPEDECK_CUDA_LIBDIR; the system's own search (LD_LIBRARY_PATH,
// ld.so.conf); the toolkit this was built with; /usr/local/cuda/lib64; the site-packages of Python environments, where NVIDIA's
// wheels put their libraries.
//
// Thread safety: everything here may be called from any thread. A library, once opened, stays open.
#pragma once

#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

enum class LoadState {
  loaded,
  missing,     // not found anywhere
  broken,      // found, but it does not load (a wrong architecture, a library it needs is missing)
  incomplete,  // loaded, but too old: a function is not in it
};

// What to look for: the library's name in messages, its file, and its folder in a Python environment's site-packages.
struct LibraryName {
  const char* title;    // "cuBLASLt"
  const char* file;     // "libcublasLt.so.13"
  const char* package;  // "nvidia/cu13/lib"
};

// Where the library is looked for, in order: full paths, and the bare file name for the system's own search.
std::vector<std::string> library_candidates(const LibraryName& name);

// One function of a table: the symbol's name, and where in the table its pointer goes.
struct TableEntry {
  const char* symbol;
  std::size_t offset;
};

struct LoadedTable {
  LoadState state = LoadState::missing;
  std::string why;   // empty if loaded, else one line: "cuDNN (libcudnn.so.9) is not installed; looked in ..."
  std::string path;  // the candidate that was opened
};

// Opens the library and fills in `table`; on failure the table's contents are unspecified. Opens anew on every call.
LoadedTable load_table(const LibraryName& name, std::span<const TableEntry> entries, void* table);

// A table filled in on first use, once: the answer, good or bad, is kept for the whole process.
template <class Table>
class LazyTable {
 public:
  LazyTable(const LibraryName& name, std::span<const TableEntry> entries) : name_(name), entries_(entries) {}

  // The fake if one is installed, else the library's functions; null if it cannot be had, and then *why says why not.
  const Table* get(std::string* why) {
    if (const Table* fake = fake_.load(std::memory_order_acquire)) return fake;
    std::call_once(once_, [&] { result_ = load_table(name_, entries_, &table_); });
    if (result_.state == LoadState::loaded) return &table_;
    if (why) *why = result_.why;
    return nullptr;
  }
  // Returns the fake that was installed before, or null.
  const Table* set_fake(const Table* fake) { return fake_.exchange(fake, std::memory_order_acq_rel); }

 private:
  LibraryName name_;
  std::span<const TableEntry> entries_;
  std::once_flag once_;
  LoadedTable result_;
  Table table_{};
  std::atomic<const Table*> fake_{nullptr};
};

// Puts a fake in a table's place for the life of a scope: `ScopedFake fake(my_lt_api);`. The fake must outlive the scope.
template <class Table>
class ScopedFake {
 public:
  explicit ScopedFake(const Table& fake) : previous_(set_fake(&fake)) {}
  ~ScopedFake() { set_fake(previous_); }
  ScopedFake(const ScopedFake&) = delete;
  ScopedFake& operator=(const ScopedFake&) = delete;

 private:
  const Table* previous_;
};

// A table's functions are listed once, as F(name, result, (parameters)); the struct and the symbols are both made from the
// list.
#define TAPEDECK_TABLE_FIELD(function, result, parameters) result(*function) parameters = nullptr;
#define TAPEDECK_TABLE_ENTRY(function, result, parameters) \
  ::tapedeck::kernels::cuda::TableEntry{#function, offsetof(TAPEDECK_TABLE, function)},

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
