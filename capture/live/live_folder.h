// The folder that a running program writes for viewers, and the list of such folders.
//
//     $XDG_RUNTIME_DIR/tapedeck-live/        or tapedeck-live-UID in the folder for temporary files; only its user can look
//     inside
//       train-4711-1789/                     one for each program: name, process, time of the start
//         info                               name, process, start: lines of KEY=VALUE
//         status                             how far the program is, 64 bytes that are overwritten in place (live_status.h)
//         alive                              the program holds a lock (flock) on it for as long as it lives
//         watched                            every viewer holds a shared lock on it for as long as it looks
//         chunk-00000001 ...                 the records (live_records.h)
//         capture-1.tape ...                 captured steps
//         request                            what a viewer asks for
//
// A lock is given up by the system when its process dies, however it dies, so a folder is known to be stale without a guess.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {
namespace live TAPEDECK_API {

// A file descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(o.release()) {}
  Descriptor& operator=(Descriptor&& o) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release() noexcept;
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The folder of the folders: `base`, or the user's own if it is empty. It is made if it does not exist. Throws FileError if it
// cannot be made, is a link, belongs to another user, or lets other users in.
std::string base_folder(const std::string& base);

// Makes the folder of this process in the base folder. Throws FileError.
std::string make_program_folder(const std::string& base, const std::string& name);

// Opens a folder of a program for reading or writing its files. Throws FileError if it is a link or no folder, or if it belongs
// to another user.
Descriptor open_folder(const std::string& folder);

// The name of this program, from the system: letters, digits and _ - . alone, at most 40.
std::string own_program_name();
std::string clean_name(const std::string& name);

struct ProgramInfo {
  std::string name;
  std::int64_t process = 0;
  std::int64_t started = 0;  // seconds since 1970
};
void write_info(int folder, const ProgramInfo& info);  // throws FileError
bool read_info(int folder, ProgramInfo* info);         // false if there is none, or a damaged one

// A folder of a program that lives, or has left it for a viewer that looked at it.
struct RunningProgram {
  std::string folder;
  ProgramInfo info;
  bool alive = false;
  std::int64_t ops = 0, live_bytes = 0;  // as the program last told
};

// The programs of this user that write a live view, the youngest first, and what died with a viewer still looking at it.
// Removes the folders of dead programs at which nobody looks. `base` as in base_folder(). Never throws: what cannot be read is
// not listed.
std::vector<RunningProgram> running_programs(const std::string& base = {}) noexcept;

// ---- locks ----

Descriptor lock_alive(int folder);    // for the program: held until it is closed; throws FileError
Descriptor lock_watched(int folder);  // for a viewer; not open if the folder is gone
bool is_alive(int folder) noexcept;
void remove_if_unused(const std::string& folder) noexcept;  // if its program is dead and nobody looks at it

}  // namespace TAPEDECK_API
}  // namespace tapedeck
