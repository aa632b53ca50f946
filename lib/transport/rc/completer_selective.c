/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/ext.h"
#include "transport/rc/loss_answers_selective.h"

/* The completer of extended mode. */
#define COMPLETER(name) ur_ext_completer_##name
#include "transport/rc/completer_template.h"
