/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_STEER_H
#define UROCED_STEER_H

#include "ports.h"
#include "switch/switch.h"

/*
 * Which port of the switch gets a frame when clients share the host's address (docs/design/uroced.md). Pure: it reads the frame
 * and changes nothing. Thread class: the daemon's one thread.
 */
struct steer {
	uint8_t mac[6]; /* the host's addresses */
	uint8_t ip4[4];
	uint64_t uplinks; /* ports, bit p */
	uint8_t self;	  /* port of the daemon's own end, self.h */
	bool kernel; /* the address is the kernel's too, which resolves neighbours: their questions go to self alone */
	/* Of leases: */
	uint64_t clients;	     /* ports, bit p */
	uint8_t port[PORTS_CLIENTS]; /* of a client's number; 0: none */
	struct port_spaces ports;
};

/* `mac` and `address`, which is in host byte order, are the host's. No client. */
void steer_init(struct steer *s, const uint8_t mac[6], uint32_t address, uint32_t random);

/* A lease begins and ends: its number in [1, 62], and its port. */
void steer_add(struct steer *s, uint8_t number, uint8_t port);
void steer_remove(struct steer *s, uint8_t number);

/*
 * UROCED-STEER-01: the ports that get a frame, as ur_switch_steer.ports has them. `arg`: struct steer.
 *
 *	to the host, RoCE	    the client whose number the QPN begins with
 *	to the host, QP1	    a request: the client with the port; else the client whose number the communication id begins
 *				    with; if there is none, the daemon's own end
 *	to the host, UDP port 9	    from a client: the one that its source port names, UROCED-DIRECT-04
 *	to the host, other	    the daemon's own end; answers of ARP and neighbour discovery all clients as well, which have
 *				    tables of their own
 *	multicast RoCE		    all but the port it came by
 *	other groups		    from a client: the daemon's own end and the uplinks; from an uplink: the same, ARP as above
 *	to another host		    the uplinks; none if it came from there, unless there are several
 */
uint64_t steer_ports(void *arg, uint8_t in, const struct ur_switch_frame *frame,
		     const struct ur_switch_headers *h);

#endif
