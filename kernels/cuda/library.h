// Vendor libraries (cuBLASLt, cuDNN, NVRTC), opened on first use and never linked. They hold hundreds of megabytes, take up to
// a quarter of a second to load, and most runs need none of them. The code reaches each library through a table of function
// pointers, which lists only the functions that are called (lt_api.h, dnn_api.h, rtc_api.h). A missing library never crashes
// the program: the caller gets a null table and a reason in words. Tests put fake functions into the same tables.
//
// A library is searched in this order:
//   1. the folder named by $TAPEDECK_CUDA_LIBDIR
//   2. the system's own search path (LD_LIBRARY_PATH, ld.so.conf)
//   3. the CUDA toolkit that the build used
//   4. /usr/local/cuda/lib64
//   5. the site-packages folders of Python, where NVIDIA's wheels put their libraries
//
// Thread safety: any thread may call every function of this file. An opened library stays open.
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
  missing,     // no file was found
  broken,      // a file was found, but the loader refuses it: a wrong architecture, or another library is missing
  incomplete,  // the library loads, but lacks a function: it is too old
};

// The names of one library.
struct LibraryName {
  const char* title;    // the name in messages: "cuBLASLt"
  const char* file;     // the file: "libcublasLt.so.13"
  const char* package;  // the folder inside a Python site-packages folder: "nvidia/cu13/lib"
};

// The files to try, in order: full paths, and the bare file name for the system's own search.
std::vector<std::string> library_candidates(const LibraryName& name);

// One function of a table: the name of the symbol, and the offset in bytes of its pointer in the table.
struct TableEntry {
  const char* symbol;
  std::size_t offset;
};

struct LoadedTable {
  LoadState state = LoadState::missing;
  std::string why;   // empty if loaded, otherwise one line: "cuDNN (libcudnn.so.9) is not installed; looked in ..."
  std::string path;  // the candidate that was opened
};

// Opens the library and fills `table` with the functions of `entries`. After a failure the contents of the table are
// unspecified. Every call opens the library anew; LazyTable remembers the result.
LoadedTable load_table(const LibraryName& name, std::span<const TableEntry> entries, void* table);

// A table that is filled once, at the first use. The result, success or failure, holds until the process ends.
template <class Table>
class LazyTable {
 public:
  LazyTable(const LibraryName& name, std::span<const TableEntry> entries) : name_(name), entries_(entries) {}

  // Returns the fake if a test has installed one, otherwise the functions of the library. Returns null if the library cannot be
  // loaded; *why (if given) then holds the reason.
  const Table* get(std::string* why) {
    if (const Table* fake = fake_.load(std::memory_order_acquire)) return fake;
    std::call_once(once_, [&] { result_ = load_table(name_, entries_, &table_); });
    if (result_.state == LoadState::loaded) return &table_;
    if (why) *why = result_.why;
    return nullptr;
  }
  // Installs a fake (null removes it) and returns the previous fake, or null.
  const Table* set_fake(const Table* fake) { return fake_.exchange(fake, std::memory_order_acq_rel); }

 private:
  LibraryName name_;
  std::span<const TableEntry> entries_;
  std::once_flag once_;
  LoadedTable result_;
  Table table_{};
  std::atomic<const Table*> fake_{nullptr};
};

// Installs a fake for the lifetime of this object: `ScopedFake fake(my_lt_api);`. The fake must live longer than the object.
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

// A list F(name, result, (parameters)) names the functions of a table once. The two macros make the struct and the symbol names
// from the list.
#define TAPEDECK_TABLE_FIELD(function, result, parameters) result(*function) parameters = nullptr;
#define TAPEDECK_TABLE_ENTRY(function, result, parameters) \
  ::tapedeck::kernels::cuda::TableEntry{#function, offsetof(TAPEDECK_TABLE, function)},

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
