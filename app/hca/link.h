/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapter's link: Ethernet frames over a network interface, or over a unix SOCK_SEQPACKET with one frame a message.
 *
 *	eth:NAME	the interface, through a packet socket; only frames of management are received
 *	unix:PATH	connects to a switch or fabric that listens there
 *
 * link_reopen() opens a link again that has gone.
 */
#ifndef HCA_LINK_H
#define HCA_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link {
	char name[128]; /* as the user gave it */
	bool is_unix;
	int fd;		  /* -1: down */
	unsigned ifindex; /* of an interface */
	uint8_t mac[6];
	uint64_t bps; /* 0: unknown */
};

/*
 * Opens the link. `mac` is the address to use on a unix link; an interface has its own. 0, or -1 after a sentence on
 * stderr. A unix link whose other end is not there yet is down.
 */
int link_open(struct link *l, const char *name, const uint8_t mac[6]);
void link_close(struct link *l);
/*
 * Tries to connect again if it is down, or if the interface was deleted and there is another one of that name. True if
 * the link is open.
 */
bool link_reopen(struct link *l);
/* Whether frames can pass: the interface has a carrier, the socket is connected. */
bool link_is_up(const struct link *l);

/* Sends a frame; what does not fit is dropped, as on any link. */
void link_send(struct link *l, const uint8_t *frame, size_t len);
/* The next frame's length; 0: none now. Sets fd to -1 and returns 0 if the other end is gone. */
size_t link_receive(struct link *l, uint8_t *frame, size_t room);

#endif
