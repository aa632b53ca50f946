/* SPDX-License-Identifier: BSD-3-Clause */
/* Between adapter.c and adapter_open.c. */
#ifndef HCA_ADAPTER_PRIV_H
#define HCA_ADAPTER_PRIV_H

#include "adapter.h"

extern const struct ur_nma_ops adapter_nma_ops;

/* Passes a MAD of a program to the agent, which sends it on or takes it. For struct mux_ops. */
void adapter_send_local(void *adapter, const uint8_t *mad, const struct ib_mad_addr *to);
/* Takes what the agent has to send, to programs and to the link. */
void adapter_pump(struct adapter *a);

#endif
