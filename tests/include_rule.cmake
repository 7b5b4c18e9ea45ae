# Checks the includes of every source:
# - kernels <- engine <- capture <- viewer: a folder includes only itself and folders to its left. Tests and samples may include all folders.
# - A room includes only itself and rooms that stand before it in the list below.
# - An include of our own header reads <tapedeck/...>. No include is relative to the file that includes.
# - A room holds at most 25 sources, so that a reader sees all of it; `engine/ops` has one for each family of ops.
#
#   cmake -DROOT=<source tree> -P include_rule.cmake
cmake_minimum_required(VERSION 3.25)
set(allowed_kernels kernels)
set(allowed_engine kernels engine)
set(allowed_capture kernels engine capture)
set(allowed_viewer kernels engine capture viewer)
set(rooms
  kernels kernels/attrs
  kernels/cpu kernels/cpu/elementwise kernels/cpu/movement kernels/cpu/reduction kernels/cpu/normalization kernels/cpu/products
  kernels/cpu/convolution kernels/cpu/pooling kernels/cpu/loss kernels/cpu/creation kernels/cpu/optimizer
  kernels/cuda kernels/cuda/elementwise kernels/cuda/movement kernels/cuda/reduction kernels/cuda/normalization kernels/cuda/products
  kernels/cuda/convolution kernels/cuda/pooling kernels/cuda/loss kernels/cuda/creation kernels/cuda/optimizer kernels/cuda/table
  engine/ir engine/text engine/eviction engine/eager engine/gradient engine/control engine/ops engine/nn engine
  capture/formats capture/analysis capture/cost capture/plan capture/check capture/sizes capture/record capture/import capture/passes capture/codegen
  capture/planner/place capture/planner/solvers capture/planner/facts capture/planner/schedules capture/planner/rematerialize
  capture/planner/order capture/planner/joins capture/planner/layout capture/planner/segments capture/planner/requests capture/planner/scans
  capture/planner
  capture/replay/program capture/replay/segments capture/replay/memory capture/replay/device capture/replay capture/step capture/file capture/onnx capture/onnx/ml capture/onnx/export capture/live capture/explain capture/measure capture/reduce
  capture/tool/line capture/tool/files capture/tool/reports capture/tool/commands capture/tool capture
  viewer/words viewer/plan viewer/graph viewer/model viewer/saved viewer/planning viewer/drawing viewer/tables viewer/panels viewer/compare viewer/live viewer/start viewer)
set(faults "")

# Sets `room` to the folder of the file, and `place` to its index in the list of rooms. If the folder is not in the list, the index is -1 and
# a fault is noted.
function(room_of file includer room place)
  cmake_path(GET file PARENT_PATH folder)
  list(FIND rooms ${folder} at)
  if(at EQUAL -1)
    set(faults "${faults}${includer}: ${folder} is not in the list of rooms\n" PARENT_SCOPE)
  endif()
  set(${room} ${folder} PARENT_SCOPE)
  set(${place} ${at} PARENT_SCOPE)
endfunction()

function(check_order file)
  room_of(${file} ${file} own_room own)
  file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*<tapedeck/(kernels|engine|capture|viewer)/")
  foreach(line IN LISTS lines)
    if(line MATCHES "<tapedeck/([^>]+)>")
      set(target ${CMAKE_MATCH_1})
      room_of(${target} ${file} other_room other)
      if(other GREATER own AND NOT own EQUAL -1)
        set(faults "${faults}${file}: ${own_room} stands before ${other_room} in the list of rooms and cannot include it: ${line}\n")
      endif()
    endif()
  endforeach()
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

function(check_file folder file)
  file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    if(line MATCHES "include[ \t]*<tapedeck/([a-z_]+)/")
      set(target ${CMAKE_MATCH_1})
      if(DEFINED allowed_${folder} AND NOT target IN_LIST allowed_${folder})
        set(faults "${faults}${file}: a file of ${folder} includes ${target}: ${line}\n")
      endif()
    elseif(line MATCHES "include[ \t]*<tapedeck/tapedeck\\.h>")
      if(DEFINED allowed_${folder} AND NOT capture IN_LIST allowed_${folder})
        set(faults "${faults}${file}: a file of ${folder} includes capture: ${line}\n")
      endif()
    elseif(line MATCHES "include[ \t]*<tapedeck/")
      set(faults "${faults}${file}: no such folder: ${line}\n")
    elseif(line MATCHES "include[ \t]*\"" AND NOT line MATCHES "\"[A-Za-z0-9_]+\\.moc\"|\"moc_[A-Za-z0-9_]+\\.cpp\"")
      set(faults "${faults}${file}: includes of ours read <tapedeck/...>: ${line}\n")
    elseif(line MATCHES "include[ \t]*<\\.")
      set(faults "${faults}${file}: relative include: ${line}\n")
    endif()
  endforeach()
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

# Notes a fault for each folder of `files` that holds more than 25 sources side by side.
function(check_sizes files)
  list(FILTER files INCLUDE REGEX "\\.cpp$")
  list(TRANSFORM files REPLACE "/[^/]*$" "" OUTPUT_VARIABLE folders)
  set(names ${folders})
  list(REMOVE_DUPLICATES names)
  list(REMOVE_ITEM names engine/ops)
  foreach(name IN LISTS names)
    set(inside ${folders})
    list(FILTER inside INCLUDE REGEX "^${name}$")
    list(LENGTH inside sources)
    if(sources GREATER 25)
      set(faults "${faults}${name} holds ${sources} sources side by side, and a room holds at most 25: give some of them a room of their own\n")
    endif()
  endforeach()
  set(faults "${faults}" PARENT_SCOPE)
endfunction()

set(checked 0)
foreach(folder kernels engine capture viewer samples tests)
  file(GLOB_RECURSE files RELATIVE ${ROOT}
    ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.cu ${ROOT}/${folder}/*.cuh ${ROOT}/${folder}/*.inl)
  foreach(file IN LISTS files)
    check_file(${folder} ${file})
    if(folder MATCHES "^(kernels|engine|capture|viewer)$")
      check_order(${file})
    endif()
    math(EXPR checked "${checked} + 1")
  endforeach()
  check_sizes("${files}")
endforeach()

if(faults)
  message(FATAL_ERROR "include rule broken:\n${faults}")
endif()
if(checked EQUAL 0)
  message(FATAL_ERROR "no files under ${ROOT}")
endif()
message("${checked} files keep the include rule")
