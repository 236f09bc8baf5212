/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/layer.h"

/* What a layer by itself would add, for the person who is to accept it: one line each, indented. */
int describe_layer(const Layer *l, FILE *f);
