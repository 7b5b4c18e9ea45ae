// Where the session of a file lies. For step.tape it is step.tape.session, beside it. If the folder cannot be written, it is a
// file in a folder of the user's own.
//
//     read:  own, else beside            a person who cannot write the folder has a session of their own
//     write: beside, else own            own goes away once the session stands beside the file
#pragma once

#include <tapedeck/viewer/saved/saved_session.h>

#include <optional>
#include <string>
#include <string_view>

namespace tapedeck::viewer {

// Whether the viewer reads and writes sessions by itself.
enum class Sessions { off, read, read_and_write };

// The paths of the session of one file. Empty: there is no such place.
struct SessionPlaces {
  std::string beside, own;
};

// `own_folder` may be empty. `absolute_path` tells files of one name apart in it.
SessionPlaces session_places(const std::string& path, const std::string& own_folder, const std::string& absolute_path);

struct FoundSession {
  std::optional<SavedSession> saved;
  std::string path;                // of the file that was found, also if it is ignored; empty: there is none
  std::vector<std::string> notes;  // for people: why the session, or a part of it, is ignored
};

// Reads the session. Never throws for what stands in the file, or for a file that cannot be read. A symbolic link, a folder, a
// pipe or a device is no session: who made it may have meant another file to be written.
FoundSession find_session(const SessionPlaces& places);
// Writes the text as a whole or not at all, and returns the path. Throws FileError if it can be written at neither place.
std::string write_session(const SessionPlaces& places, std::string_view text);
// Removes the session at both places. Returns false if there was none. Throws FileError if one cannot be removed.
bool remove_session(const SessionPlaces& places);

}  // namespace tapedeck::viewer
