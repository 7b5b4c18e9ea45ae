# Finds the CUDA toolkit, if TAPEDECK_CUDA asks for it and it is installed. Sets TAPEDECK_HAS_CUDA. The setting AUTO asks for CUDA only
# on a machine with a GPU: compiling the kernels takes a minute or two, and a machine without a GPU cannot run them.
#
# The runtime is linked statically and the vendor libraries are loaded on first use, so a machine without a GPU runs the same
# binaries. CUDA::nvrtc and CUDA::cuda_driver are never linked, because a program linked to them cannot start without libcuda.so.1.

set(TAPEDECK_HAS_CUDA OFF)
if(TAPEDECK_CUDA STREQUAL "OFF")
  return()
endif()
if(TAPEDECK_CUDA STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl AND NOT EXISTS /dev/dxg)  # the second is a GPU inside WSL
  return()
endif()

# The kernels are compiled to PTX once, for compute_80, and assembled for sm_80 and sm_90; devices that are newer compile the PTX. No kernel
# asks for which architecture it is compiled, so the PTX of compute_90 would be the same text, and sm_90 gets the same instructions from
# either (tests/architecture_rule.cmake). CMAKE_CUDA_ARCHITECTURES names other architectures.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(TAPEDECK_CUDA_CODE "--generate-code=arch=compute_80,code=[sm_80,sm_90,compute_80]")
endif()
# nvcc uses g++ as its host compiler even if clang compiles the rest, because clang 14 fails on <ranges> there.
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX} AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(TAPEDECK_CUDA_HOST_CXX g++)
  if(TAPEDECK_CUDA_HOST_CXX)
    set(CMAKE_CUDA_HOST_COMPILER ${TAPEDECK_CUDA_HOST_CXX} CACHE FILEPATH "Host compiler of nvcc")
  endif()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(TAPEDECK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TAPEDECK_CUDA=ON, but no CUDA compiler was found (set CUDACXX, or TAPEDECK_CUDA=AUTO)")
  endif()
  return()
endif()

enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 knows CUDA only up to C++17. Both options must be given, otherwise CMake drops the flag silently.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(TAPEDECK_HAS_CUDA ON)
