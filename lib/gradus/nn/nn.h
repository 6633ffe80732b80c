// All of gradus::nn.
#pragma once
#include <gradus/nn/activation.h>
#include <gradus/nn/clip_grad.h>
#include <gradus/nn/containers.h>
#include <gradus/nn/data_parallel.h>
#include <gradus/nn/init.h>
#include <gradus/nn/layers.h>
#include <gradus/nn/loss.h>
#include <gradus/nn/module.h>
#include <gradus/nn/scatter_gather.h>
#include <gradus/nn/state_prefix.h>
