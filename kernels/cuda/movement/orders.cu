// The kernels that sort, scan, and join elements by their indices, for the device.
#include <tapedeck/kernels/cuda/movement/combine.inl>
#include <tapedeck/kernels/cuda/movement/pairs.inl>
#include <tapedeck/kernels/cuda/movement/scan.inl>
#include <tapedeck/kernels/cuda/movement/sort.inl>
