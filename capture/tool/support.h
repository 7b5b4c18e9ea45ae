// What the commands share: sizes, loading either kind of file, progress and Ctrl-C.
#pragma once

#include <tapedeck/capture/file/file.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace tapedeck::tool {

// "64MiB", "1.5GB", "4096": bytes; KB MB GB TB are 1000s, KiB MiB GiB TiB 1024s. Throws UsageError.
std::int64_t parse_size(const std::string& text);
// What --chunk says: a size above zero; 0 for no text. Throws UsageError.
std::int64_t parse_chunk(const std::string& text);
// "50%" -> 50, anything else -> -1. Throws UsageError for a bad percentage.
double parse_percent(const std::string& text);
std::string human_size(std::int64_t bytes);  // "12.34 MiB (12,939,427 bytes)"

// A .tape, or a text graph (*.graph) as a tape that holds nothing else.
TapeFile load_any(const std::string& path, Check check);

// A progress line on stderr while it lives, if that is a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void at(double fraction);

 private:
  std::string what_;
  bool shown_ = false;
  int last_ = -1;
};

// Set by Ctrl-C once catch_interrupts() has been called, before any other thread is started. Programs started from here get
// their Ctrl-C if pass_interrupts_on() is called between fork and exec.
const std::atomic<bool>& interrupted();
void catch_interrupts();
void pass_interrupts_on();

}  // namespace tapedeck::tool
