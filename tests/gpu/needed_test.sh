#!/usr/bin/env bash
# No binary of the build names a library of CUDA as one that it needs, so each starts on a machine without a driver. These libraries are loaded on
# first use instead, and the runtime is linked statically. It holds for every preset, with CUDA or without.
set -uo pipefail
bin=$(dirname "${TAPEDECK_TOOL:?}")
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

if ! command -v readelf > /dev/null; then
  echo 'skipped: readelf, which lists the libraries that a binary needs, is not installed'
  exit 0
fi

# The names of libraries of CUDA among the lines of stdin.
of_cuda() { grep -oE '\[lib(cuda|cudart|cublas|cublasLt|cudnn[a-z_]*|nvrtc[a-z-]*|nvJitLink|cufft|curand|cusolver|cusparse)\.so[.0-9]*\]'; }

# The pattern knows the libraries, and no others that begin alike.
for name in libcuda.so.1 libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcudnn_graph.so.9 libnvrtc.so.13 libnvrtc-builtins.so.13.0; do
  of_cuda <<< "0x0 (NEEDED) Shared library: [$name]" > found || fail "the pattern does not know $name"
done
of_cuda <<< '0x0 (NEEDED) Shared library: [libc.so.6] [libCbc.so.3] [libcudagarden.so]' > found && fail "the pattern takes $(cat found)"

# check FILE: its list of libraries is not empty, and none is of CUDA.
check() {
  readelf -dW "$1" | grep NEEDED > needed
  grep -q '\[libstdc++\.so\|\[libc\.so\|\[libc++\.so' needed || fail "readelf lists no libraries of $1"
  of_cuda < needed > found && fail "$1 needs $(tr '\n' ' ' < found)"
  checked=$((checked + 1))
}

checked=0
check "$bin/tapedeck"
check "$bin/../lib/libtapedeck.so"
# These are checked where they were built.
for program in tapedeck-viewer tests_kernels tests_capture tests_gpu gpu_bench; do
  [ -x "$bin/$program" ] && check "$bin/$program"
done
echo "ok: $checked binaries need no library of CUDA"
