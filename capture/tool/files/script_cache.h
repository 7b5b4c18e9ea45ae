// Programs that were compiled from scripts, in a folder of the user.
//
//     $XDG_CACHE_HOME/tapedeck/run       the folder, else ~/.cache/tapedeck/run; only the user may write to it
//       KEY.inputs                       the files that the compiler read, one a line
//       KEY-SUM                          the program
//       .making-(six letters)            a folder in which a compiler writes; the finished program is renamed out of it
//
// KEY is a checksum of the compiler, its flags, the library and the path of the script. SUM is a checksum of the bytes of the
// files in the list.
//
// Two runs at once may both compile; each finds a whole program or none. The programs that were not used for longest are
// removed when there are more than 100 programs or 256 MiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tapedeck::tool {

inline constexpr std::size_t kMostPrograms = 100;
inline constexpr std::uintmax_t kMostProgramBytes = std::uintmax_t{256} << 20;

class ScriptCache {
 public:
  // Makes the folder. Throws FileError if there is no place for it, or if others could put their programs there.
  explicit ScriptCache(std::string key);

  std::string find() const;                           // the program; empty: none that was made from the files as they are now
  std::filesystem::path beginning_of_making() const;  // for a TemporaryFolder
  // Keeps a program that was made from these files, and removes old ones. Returns its path. Throws FileError.
  std::string keep(const std::string& program, const std::vector<std::string>& inputs) const;

 private:
  std::string list() const { return (folder_ / (key_ + ".inputs")).string(); }
  std::string program_of(const std::vector<std::string>& inputs) const;

  std::filesystem::path folder_;
  std::string key_;
};

}  // namespace tapedeck::tool
