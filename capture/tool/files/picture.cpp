// Draws a plan: .svg with the code of this library, .png by a process of the viewer that runs without a window.
#include <tapedeck/capture/tool/files/picture.h>
#include <tapedeck/capture/tool/files/temporary_folder.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/line/command.h>

#include <tapedeck/capture/explain/memory_svg.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tapedeck::tool {

namespace {

// Runs the viewer unattended; its output goes to stderr.
void shoot(const std::string& viewer, const std::string& tape, const std::string& picture) {
  const pid_t child = fork();
  if (child < 0) throw ExecutionError(fmt::format("{}: {}", viewer, std::strerror(errno)));
  if (child == 0) {
    pass_signals_on();
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl(viewer.c_str(), viewer.c_str(), tape.c_str(), "--panel", "memory", "--shot", picture.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw ExecutionError(fmt::format("{}: {}", viewer, std::strerror(errno)));
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code != kOk && code != kInfeasible)
    throw ExecutionError(
        fmt::format("{} could not draw {}: it ended with {}", viewer, picture,
                    WIFEXITED(status) ? fmt::format("exit code {}", code) : fmt::format("signal {}", WTERMSIG(status))));
}

}  // namespace

std::string viewer_program() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::string viewer = (self.parent_path() / "tapedeck-viewer").string();
  if (access(viewer.c_str(), X_OK) != 0)
    throw DeviceError("there is no tapedeck-viewer beside this tool: the build found no Qt 6 or no Dear ImGui");
  return viewer;
}

void check_picture(const std::string& path) {
  if (path.ends_with(".svg")) return;
  if (!path.ends_with(".png"))
    throw UsageError(fmt::format("--picture {}: the name of a picture must end in .svg or .png", path));
  try {
    viewer_program();
  } catch (const DeviceError& e) {
    throw DeviceError(fmt::format("--picture {}: a .png is drawn by the viewer, and {}; an .svg needs none", path, e.what()));
  }
}

void write_picture(const std::string& path, const Graph& captured, const Plan& plan) {
  if (path.ends_with(".svg")) {
    AtomicWriter out(path);
    out.write(memory_svg(plan));
    return out.commit();
  }
  if (!plan.feasible) {
    std::fprintf(stderr, "tapedeck: --picture %s: not drawn; a plan that does not fit its budget can be drawn as .svg only\n",
                 path.c_str());
    return;
  }
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "tapedeck-picture-");
  TapeFile file;
  file.captured = captured;
  file.plan = plan;
  save_tape(folder.file("plan.tape"), file);
  shoot(viewer_program(), folder.file("plan.tape"), path);
}

}  // namespace tapedeck::tool
