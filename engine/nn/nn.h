// All of engine/nn: modules, layers, optimizers and their tools.
#pragma once

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/attention.h>
#include <tapedeck/engine/nn/containers.h>
#include <tapedeck/engine/nn/conv.h>
#include <tapedeck/engine/nn/dropout.h>
#include <tapedeck/engine/nn/embedding.h>
#include <tapedeck/engine/nn/grad_scaler.h>
#include <tapedeck/engine/nn/gradients.h>
#include <tapedeck/engine/nn/hooks.h>
#include <tapedeck/engine/nn/initialise.h>
#include <tapedeck/engine/nn/layers.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/nn/norm.h>
#include <tapedeck/engine/nn/optimizer.h>
#include <tapedeck/engine/nn/recurrent.h>
#include <tapedeck/engine/nn/schedule.h>
