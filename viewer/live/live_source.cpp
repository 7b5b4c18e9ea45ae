#include <tapedeck/viewer/live/live_source.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kPortion = 64 << 10;
constexpr std::chrono::milliseconds kPause{30};

live::Descriptor open_plain(int folder, const char* name) {
  live::Descriptor file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (file && (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))) return {};
  return file;
}

}  // namespace

const char* live_state_name(LiveState state) {
  switch (state) {
    case LiveState::running:
      return "running";
    case LiveState::finished:
      return "has ended";
    case LiveState::died:
      return "died";
  }
  return "";
}

// ---- the reader ----

LiveReader::LiveReader(const std::string& folder) : path_(folder), directory_(live::open_folder(folder)) {
  watched_ = live::lock_watched(directory_.get());
  if (!live::read_info(directory_.get(), &info_)) throw FileError(folder + ": is no folder of a live view");
}

LiveReader::~LiveReader() {
  watched_ = {};
  live::remove_if_unused(path_);
}

void LiveReader::ask(const std::string& what) const {
  const std::string text = what + "\n", name = fmt::format(".request-{}", ::getpid());
  const live::Descriptor file(
      ::openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::renameat(directory_.get(), name.c_str(), directory_.get(), "request") != 0)
    throw FileError(fmt::format("{}: {}", path_, std::strerror(errno)));
}

// 0: none.
std::uint64_t LiveReader::lowest_chunk_from(std::uint64_t number) const {
  std::uint64_t lowest = 0;
  std::error_code failed;
  using Entries = std::filesystem::directory_iterator;
  for (Entries entry(path_, failed); !failed && entry != Entries(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    constexpr std::string_view kPrefix = "chunk-";
    std::uint64_t found = 0;
    if (!name.starts_with(kPrefix)) continue;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kPrefix.size(), end, found);
    if (read.ec != std::errc() || read.ptr != end || found < number || found == 0) continue;
    lowest = lowest == 0 ? found : std::min(lowest, found);
  }
  return lowest;
}

bool LiveReader::open_chunk(std::uint64_t number) {
  live::Descriptor file = open_plain(directory_.get(), fmt::format("chunk-{:08}", number).c_str());
  unsigned char header[live::kChunkHeaderBytes];
  if (!file || ::pread(file.get(), header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) return false;
  if (const std::string problem = live::RecordReader::header_problem(header, number); !problem.empty()) {
    damage_ = fmt::format("chunk {} {}", number, problem);
    return false;
  }
  chunk_ = std::move(file);
  number_ = number;
  offset_ = static_cast<std::int64_t>(sizeof(header));
  bytes_.clear();  // the rest of a chunk that was cut off by the death of its program
  return true;
}

// A program that is faster than the viewer removes chunks that were not read: then the next that is there is taken.
bool LiveReader::open_next_chunk() {
  const std::uint64_t next = lowest_chunk_from(number_ + 1);
  return next != 0 && open_chunk(next);
}

bool LiveReader::read(LiveTape* tape, std::mutex& lock) {
  if (!damage_.empty()) return false;
  if (!chunk_ && !open_next_chunk()) return false;
  const std::size_t before = bytes_.size();
  bytes_.resize(before + kPortion);
  // A chunk after this one was begun when this one was whole. So it is looked for first.
  const bool is_whole = lowest_chunk_from(number_ + 1) != 0;
  const ssize_t n = ::pread(chunk_.get(), bytes_.data() + before, kPortion, offset_);
  bytes_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (n <= 0) return is_whole && open_next_chunk();
  offset_ += n;
  std::span<const unsigned char> rest(bytes_);
  live::Record record;
  std::size_t taken = 0;
  {
    const std::lock_guard guard(lock);
    for (; reader_.next(rest, &record, &taken); rest = rest.subspan(taken)) tape->add(record);
  }
  bytes_.erase(bytes_.begin(), bytes_.end() - static_cast<std::ptrdiff_t>(rest.size()));
  if (!reader_.damage().empty()) damage_ = fmt::format("chunk {} is damaged: {}", number_, reader_.damage());
  return true;
}

// ---- the thread ----

LiveSource::LiveSource(const std::string& folder) : reader_(folder), thread_([this] { run(); }) {}

LiveSource::~LiveSource() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

// A mutex may go to the reader again and again while the thread of the windows waits for it, so the reader lets it pass.
void LiveSource::let_views_pass() const {
  while (waiting_.load() > 0) std::this_thread::yield();
}

bool LiveSource::read_portion() {
  let_views_pass();
  try {
    return reader_.read(&tape_, mutex_);
  } catch (const std::exception& e) {  // no memory for what came
    reader_.give_up(e.what());
    return false;
  }
}

void LiveSource::run() {
  std::unique_lock stop_lock(stop_mutex_);
  while (!stop_) {
    stop_lock.unlock();
    const bool alive = reader_.is_alive();  // before the last look, so that nothing is missed of a program that has died
    const bool more = read_portion();
    let_views_pass();
    {
      const std::lock_guard lock(mutex_);
      const LiveState now = alive ? LiveState::running : tape_.ended() ? LiveState::finished : LiveState::died;
      if (more || now != state_ || damage_ != reader_.damage()) ++changes_;
      if (!more) state_ = now;
      damage_ = reader_.damage();
    }
    stop_lock.lock();
    if (more) continue;
    ++caught_up_;
    stopped_.notify_all();
    stopped_.wait_for(stop_lock, kPause, [this] { return stop_; });
  }
}

void LiveSource::wait_until_read() const {
  std::unique_lock lock(stop_mutex_);
  const std::uint64_t before = caught_up_;
  stopped_.wait(lock, [&] { return stop_ || caught_up_ > before + 1; });
}

}  // namespace tapedeck::viewer
