// Tests that a write that fails leaves the old file or the new one, whole, and no temporary file; and that a write that is
// killed leaves a file which the next write removes.
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <utility>

namespace tapedeck {
namespace {

// Limits all files of this process to `bytes`. A larger write() fails with EFBIG, like ENOSPC on a full disk, and raises a
// signal that ends the process unless the writer sees to it.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_DFL);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const struct rlimit now = {bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  struct rlimit old_;
  void (*old_handler_)(int);
};

void write_file(const std::string& path, const std::string& bytes) {
  AtomicWriter writer(path);
  for (std::size_t at = 0; at < bytes.size(); at += 100'000) writer.write(std::string_view(bytes).substr(at, 100'000));
  writer.commit();
}

TEST(AtomicWrite, WritesSmallAndLarge) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 99'999u, 262'144u, 262'145u, 3'000'000u}) {
    const std::string bytes(size, static_cast<char>('a' + size % 26));
    write_file(folder.file("f"), bytes);
    EXPECT_EQ(read_all(folder.file("f")), bytes);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
  }
}

// A piece that is too large for the buffer must not be written before the bytes that wait in the buffer.
TEST(AtomicWrite, KeepsTheOrderOfPieces) {
  const TemporaryFolder folder;
  for (const std::size_t size : {131'072u, 131'073u, 200'000u, 262'140u, 262'144u, 300'000u}) {
    const std::string large(size, 'x');
    AtomicWriter writer(folder.file("f"));
    for (const std::string_view piece : {std::string_view("head"), std::string_view(large), std::string_view("tail")})
      writer.write(piece);
    writer.commit();
    EXPECT_TRUE(read_all(folder.file("f")) == "head" + large + "tail") << size;
  }
}

TEST(AtomicWrite, WithoutCommitNothingHappens) {
  const TemporaryFolder folder;
  write_all(folder.file("f"), "old");
  { AtomicWriter(folder.file("f")).write(std::string(1'000'000, 'x')); }
  EXPECT_EQ(read_all(folder.file("f")), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(AtomicWrite, FullDiskLeavesTheOldFileAndNoDebris) {
  const TemporaryFolder folder;
  write_all(folder.file("f"), "old");
  for (const std::size_t size : {200'000u, 1'000'000u}) {  // the first fails in commit(), the second in write()
    std::string message;
    {
      const FileSizeLimit limit(65'536);
      message = message_of<FileError>([&] { write_file(folder.file("f"), std::string(size, 'x')); });
    }
    EXPECT_NE(message.find(folder.file("f") + ": cannot write: File too large"), std::string::npos) << message;
    EXPECT_EQ(read_all(folder.file("f")), "old");
    EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
  }
}

TEST(AtomicWrite, DevicesAreWrittenToNotReplaced) {
  const std::string message = message_of<FileError>([] { write_file("/dev/full", "text"); });
  EXPECT_EQ(message, "/dev/full: cannot write: No space left on device");
  write_file("/dev/null", "text");
  struct stat info;
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(AtomicWrite, BadPaths) {
  const TemporaryFolder folder;
  EXPECT_NE(message_of<FileError>([&] { write_file(folder.file("no/such/f"), "x"); }).find("No such file or directory"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { write_file(folder.file(""), "x"); }).find("Is a directory"), std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { write_file("", "x"); }).find("cannot write"), std::string::npos);
}

TEST(AtomicWrite, KeepsLinksAndPermissions) {
  const TemporaryFolder folder;
  write_all(folder.file("f"), "old");
  ASSERT_EQ(::chmod(folder.file("f").c_str(), 0640), 0);
  std::filesystem::create_symlink("f", folder.file("link"));
  write_file(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_all(folder.file("f")), "new");
  struct stat info;
  ASSERT_EQ(::stat(folder.file("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(AtomicWrite, MakesTheFileThatADanglingLinkLeadsTo) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("there"));
  std::filesystem::create_symlink("there/second", folder.file("first"));
  std::filesystem::create_symlink(folder.file("there/f"), folder.file("there/second"));
  write_file(folder.file("first"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("there/second")));
  EXPECT_EQ(read_all(folder.file("there/f")), "new");
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder.file("there/f"))));

  std::filesystem::create_symlink("circle", folder.file("circle"));
  EXPECT_NE(message_of<FileError>([&] { write_file(folder.file("circle"), "x"); }).find("symbolic links"), std::string::npos);
}

unsigned mode_of(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777u : 0u;
}

TEST(AtomicWrite, OthersReadTheFileOnlyInItsPlace) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  for (const char* name : {"made", "replaced"}) {
    if (name == std::string("replaced")) {
      write_all(folder.file(name), "old");
      ASSERT_EQ(::chmod(folder.file(name).c_str(), 0664), 0);
    }
    AtomicWriter writer(folder.file(name));
    writer.write(std::string(300'000, 'x'));
    int temporaries = 0;
    for (const std::string& other : folder.names())
      if (other != "made" && other != "replaced") temporaries += mode_of(folder.file(other)) == 0600;
    EXPECT_EQ(temporaries, 1);
    writer.commit();
    EXPECT_EQ(mode_of(folder.file(name)), name == std::string("made") ? 0640u : 0664u);
  }
  ::umask(before);
}

TEST(AtomicWrite, NamesMayBeAsLongAsTheSystemAllows) {
  const TemporaryFolder folder;
  for (const std::size_t length : {250u, 255u}) write_file(folder.file(std::string(length, 'n')), "text");
  EXPECT_EQ(read_all(folder.file(std::string(255, 'n'))), "text");
  EXPECT_NE(message_of<FileError>([&] { write_file(folder.file(std::string(256, 'n')), "x"); }).find("too long"),
            std::string::npos);
  EXPECT_EQ(folder.names().size(), 2u);
}

// ---- faults at each call of the system ----

constexpr std::size_t kWrittenSize = 1'000'000;

struct Hook {
  explicit Hook(FileCallHook hook) { set_file_call_hook(std::move(hook)); }
  ~Hook() { set_file_call_hook({}); }
};

TEST(AtomicWrite, EveryFailingCallLeavesTheOldFileOrTheNewOne) {
  const TemporaryFolder folder;
  const std::string made(kWrittenSize, 'n');
  int k = 0;
  for (bool failed = true; failed && k < 30; ++k) {
    write_all(folder.file("f"), "old");
    failed = false;
    FileCall at{};
    std::string message;
    {
      int calls = 0;
      const Hook hook([&](FileCall call) {
        if (calls++ != k) return 0;
        at = call;
        failed = true;
        return EIO;
      });
      try {
        write_file(folder.file("f"), made);
      } catch (const FileError& e) {
        message = e.what();
      }
    }
    const bool is_new = read_all(folder.file("f")) == made;
    EXPECT_TRUE(is_new || read_all(folder.file("f")) == "old") << k;
    EXPECT_EQ(folder.names(), std::vector<std::string>{"f"}) << k;
    if (failed) {
      EXPECT_EQ(message, folder.file("f") + ": cannot write: Input/output error") << k;
      EXPECT_TRUE(!is_new || at == FileCall::sync) << k;  // the sync of the folder comes after the rename
    }
  }
  EXPECT_GE(k, 8);  // open, four writes, sync, rename, sync of the folder
}

// Runs `write` in a child that is killed before its k-th call. Returns whether it was.
bool is_killed_at(int k, const std::function<void()>& write) {
  const pid_t child = ::fork();
  if (child == 0) {
    int calls = 0;
    const Hook hook([&](FileCall) { return calls++ == k ? std::raise(SIGKILL) : 0; });
    write();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST(AtomicWrite, TheNextWriteRemovesWhatAKilledWriterLeft) {
  const TemporaryFolder folder;
  const std::string made(kWrittenSize, 'n');
  std::size_t most_names = 0;
  int k = 0;
  for (bool killed = true; killed && k < 30; ++k) {
    write_all(folder.file("f"), "old");
    killed = is_killed_at(k, [&] { write_file(folder.file("f"), made); });
    const std::string now = read_all(folder.file("f"));
    EXPECT_TRUE(now == "old" || now == made) << k;
    most_names = std::max(most_names, folder.names().size());
    write_file(folder.file("f"), "next");
    EXPECT_EQ(folder.names(), std::vector<std::string>{"f"}) << k;
    EXPECT_EQ(read_all(folder.file("f")), "next");
  }
  EXPECT_GE(k, 8);
  EXPECT_EQ(most_names, 2u);
}

TEST(AtomicWrite, KeepsTheFilesOfLivingWritersAndOfOtherTargets) {
  const TemporaryFolder folder;
  EXPECT_TRUE(is_killed_at(2, [&] { write_file(folder.file("g"), std::string(kWrittenSize, 'x')); }));
  AtomicWriter living(folder.file("f"));
  living.write("living");
  write_file(folder.file("f"), "other");
  EXPECT_EQ(folder.names().size(), 3u);
  living.commit();
  EXPECT_EQ(read_all(folder.file("f")), "living");
  write_file(folder.file("g"), "text");
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(AtomicWrite, TwoWritersOfOnePathDoNotMix) {
  const TemporaryFolder folder;
  AtomicWriter a(folder.file("f")), b(folder.file("f"));
  a.write(std::string(300'000, 'a'));
  b.write(std::string(300'000, 'b'));
  a.commit();
  EXPECT_EQ(read_all(folder.file("f")), std::string(300'000, 'a'));
  b.commit();
  EXPECT_EQ(read_all(folder.file("f")), std::string(300'000, 'b'));
}

}  // namespace
}  // namespace tapedeck
