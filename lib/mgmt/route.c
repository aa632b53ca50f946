/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"

/*
 * Directed routes (IBA 14.2.2). With hop count n, hop pointer h counts the hops of the request: it leaves
 * its source with h = 1, is for the node at which it arrives with h = n, and is h = n + 1 there. The response
 * counts back to 0. Each node records in the return path at which port the request arrived. The parts before
 * and after the directed route may be LID-routed; MGMT-DR-01.
 */

static bool leave_by_hop(const struct ur_nma *nma, uint8_t port, struct ur_nma_to *to)
{
	if (port == 0 || port > nma->attr.limits.ports || !nma_link(nma, port).up)
		return false;
	*to = (struct ur_nma_to){.way = UR_MAD_HOP, .port = port};
	return true;
}

/* Continues by LID from this node. */
static bool leave_by_lid(const struct ur_nma *nma, uint16_t dlid, struct ur_nma_to *to)
{
	uint8_t port = nma->first_port;
	uint16_t slid = nma->port[port].lid;

	if (!nma_is_switch(nma) || !slid || !ur_lid_is_unicast(dlid))
		return false;
	*to = (struct ur_nma_to){.way = UR_MAD_LID, .port = port, .slid = slid, .dlid = dlid};
	return true;
}

static enum nma_route forward(const struct ur_nma *nma, uint8_t *mad,
			      const struct ur_nma_from *from, struct ur_nma_to *to)
{
	uint8_t *pointer = &mad[UR_SMP_HOP_POINTER], count = mad[UR_SMP_HOP_COUNT];
	uint16_t dlid = ur_load16(mad + UR_SMP_DR_DLID);
	bool by_hop = from->way == UR_MAD_HOP, by_lid = from->way == UR_MAD_LID;

	if (*pointer == 0 && count) { /* C14-9: it starts here */
		if (by_hop || (by_lid && !nma_is_switch(nma)))
			return NMA_DISCARD;
		*pointer = 1;
		return leave_by_hop(nma, mad[UR_SMP_INITIAL + 1], to) ? NMA_OUT : NMA_DISCARD;
	}
	if (*pointer < count) {
		if (!by_hop || !nma_is_switch(nma))
			return NMA_DISCARD;
		mad[UR_SMP_RETURN + *pointer] = from->port;
		++*pointer;
		return leave_by_hop(nma, mad[UR_SMP_INITIAL + *pointer], to) ? NMA_OUT
									     : NMA_DISCARD;
	}
	if (*pointer == count) {
		/* Without a hop it was sent on this node. */
		if (count ? !by_hop : by_hop)
			return NMA_DISCARD;
		if (count)
			mad[UR_SMP_RETURN + count] = from->port;
		++*pointer;
		if (dlid == UR_LID_PERMISSIVE)
			return NMA_HERE;
		return leave_by_lid(nma, dlid, to) ? NMA_OUT : NMA_DISCARD;
	}
	/* The LID-routed part after the hops ends here. */
	return *pointer == count + 1 && by_lid && dlid != UR_LID_PERMISSIVE ? NMA_HERE
									    : NMA_DISCARD;
}

/* The end of the return path's hops. */
static enum nma_route end_return(const struct ur_nma *nma, const uint8_t *mad, struct ur_nma_to *to)
{
	uint16_t slid = ur_load16(mad + UR_SMP_DR_SLID);

	if (slid == UR_LID_PERMISSIVE)
		return NMA_CLIENT;
	return leave_by_lid(nma, slid, to) ? NMA_OUT : NMA_DISCARD;
}

static enum nma_route back(const struct ur_nma *nma, uint8_t *mad, const struct ur_nma_from *from,
			   struct ur_nma_to *to)
{
	uint8_t *pointer = &mad[UR_SMP_HOP_POINTER], count = mad[UR_SMP_HOP_COUNT];
	bool by_hop = from->way == UR_MAD_HOP, by_lid = from->way == UR_MAD_LID;

	if (*pointer == 0) /* C14-13: the LID-routed part ends here */
		return by_lid ? NMA_CLIENT : NMA_DISCARD;
	/* A client answers, such as a subnet manager to SMInfo. */
	if (*pointer == count + 1 && from->way == UR_MAD_LOCAL)
		return nma_return_dr(nma, mad, from, to);
	if (*pointer == count + 1) {
		/* The hops begin at the switch to which the responder's LID-routed part led. */
		if (!by_lid || !count || !nma_is_switch(nma))
			return NMA_DISCARD;
		--*pointer;
		return leave_by_hop(nma, mad[UR_SMP_RETURN + *pointer], to) ? NMA_OUT : NMA_DISCARD;
	}
	if (*pointer > count || !by_hop)
		return NMA_DISCARD;
	--*pointer;
	if (*pointer == 0)
		return end_return(nma, mad, to);
	if (!nma_is_switch(nma))
		return NMA_DISCARD;
	return leave_by_hop(nma, mad[UR_SMP_RETURN + *pointer], to) ? NMA_OUT : NMA_DISCARD;
}

enum nma_route nma_route_dr(const struct ur_nma *nma, uint8_t *mad, const struct ur_nma_from *from,
			    struct ur_nma_to *to)
{
	if (mad[UR_SMP_HOP_COUNT] > UR_SMP_HOPS_MAX)
		return NMA_DISCARD;
	return ur_smp_is_back(mad) ? back(nma, mad, from, to) : forward(nma, mad, from, to);
}

enum nma_route nma_return_dr(const struct ur_nma *nma, uint8_t *mad, const struct ur_nma_from *from,
			     struct ur_nma_to *to)
{
	uint8_t count = mad[UR_SMP_HOP_COUNT];

	UR_ASSERT(mad[UR_SMP_HOP_POINTER] == count + 1);
	if (from->way == UR_MAD_LID) { /* to the switch at which the hops ended */
		*to = (struct ur_nma_to){.way = UR_MAD_LID,
					 .port = nma_is_switch(nma) ? 0 : from->port,
					 .slid = from->dlid,
					 .dlid = from->slid};
		return NMA_OUT;
	}
	mad[UR_SMP_HOP_POINTER] = count;
	if (!count)
		return end_return(nma, mad, to);
	return leave_by_hop(nma, mad[UR_SMP_RETURN + count], to) ? NMA_OUT : NMA_DISCARD;
}
