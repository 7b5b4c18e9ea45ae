// The kernels that copy elements from place to place for the device.
#include <tapedeck/kernels/cuda/movement/copies.inl>
#include <tapedeck/kernels/cuda/movement/mask.inl>
#include <tapedeck/kernels/cuda/movement/select.inl>
#include <tapedeck/kernels/cuda/movement/windows.inl>
