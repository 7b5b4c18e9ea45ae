// Tests that a failed write leaves the old file unchanged and no temporary file behind.
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

namespace tapedeck {
namespace {

// Limits all files of this process to `bytes`. A larger write() fails with EFBIG, like ENOSPC on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
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
