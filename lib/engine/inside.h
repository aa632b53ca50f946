/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_INSIDE_H
#define UR_ENGINE_INSIDE_H

#include "engine/verbs.h"
#include "transport/core.h"
#include "transport/qp.h"

/* Access to the parts of an engine, for tests. The layers above the engine never include this. */
struct ur_core *ur_engine_core(struct ur_engine *e);

#endif
