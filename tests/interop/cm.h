/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_CM_H
#define INTEROP_CM_H

#include <netinet/in.h>

#include "session.h"

/*
 * Connections by CM, with uroce/cm.h (cm_uroce.c) or librdmacm (cm_rdmacm.c). On failure the
 * functions record the reason and return false. A connection owns s->qp; cm_disconnect() destroys
 * both.
 */
enum { CM_PORT = 7480, CM_PORT_UNUSED = 7481 };

/* Private data of a refusal. */
#define CM_REFUSAL "not today"

bool cm_open(struct session *s);
bool cm_listen(struct session *s);
/* Wait for a request and accept it, or refuse it. */
bool cm_accept(struct session *s);
bool cm_refuse(struct session *s);
/* Connects to s->remote.gid; expects the peer's refusal, or that there is no listener. */
bool cm_connect(struct session *s);
bool cm_expect_refusal(struct session *s, bool no_listener);
/* Ends the connection, or waits until the peer has ended it. */
bool cm_disconnect(struct session *s, bool by_us);
void cm_close(struct session *s);

/* The peer's address in CM's space of ports; its length is that of its family. */
struct sockaddr_storage cm_peer(const struct session *s, uint16_t port);

#endif
